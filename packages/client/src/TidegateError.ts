import type { components } from "./schema.ts"

type ErrorBody = components["schemas"]["ErrorBody"]

/** The codes of the contract. A newer gateway may send others. */
export type ErrorCode = ErrorBody["code"]

/** The gateway has refused a call, or the call failed there. */
export class TidegateError extends Error {
  override readonly name = "TidegateError"
  readonly status: number
  /** For programs. `UNKNOWN`: the answer did not come from the gateway, but for example from a proxy in front of it. */
  readonly code: ErrorCode | "UNKNOWN"
  /** Details of the code, such as the invalid members, or the resource that already has the name. */
  readonly data: Readonly<Record<string, unknown>>
  /** The id under which the gateway's log has the cause of a 5xx; null for other answers. */
  readonly requestId: string | null

  constructor(response: Response, body: Partial<ErrorBody> | undefined) {
    super(body?.message ?? `${response.status} ${response.statusText}`)
    this.status = response.status
    this.code = body?.code ?? "UNKNOWN"
    this.data = body?.data ?? {}
    this.requestId = response.headers.get("x-error-id")
  }

  /**
   * `TidegateError: NOT_FOUND (404): source src_1 was not found`. The code is included, because programs and people search for
   * it.
   */
  override toString(): string {
    return `${this.name}: ${this.code} (${this.status}): ${this.message}`
  }
}
