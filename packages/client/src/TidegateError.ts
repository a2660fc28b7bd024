import type { components } from "./schema.ts"

type ErrorBody = components["schemas"]["ErrorBody"]

/** The codes that the contract has. A newer gateway may answer others. */
export type ErrorCode = ErrorBody["code"]

/** A call that the gateway has refused, or has failed at. */
export class TidegateError extends Error {
  override readonly name = "TidegateError"
  readonly status: number
  /** For programs. `UNKNOWN`: the answer was none of the gateway's own; a proxy may stand between. */
  readonly code: ErrorCode | "UNKNOWN"
  /** What the code has to add: the members that are wrong, the resource that has the name. */
  readonly data: Readonly<Record<string, unknown>>
  /** By which the gateway's log tells the cause of a 5xx; null of other answers. */
  readonly requestId: string | null

  constructor(response: Response, body: Partial<ErrorBody> | undefined) {
    super(body?.message ?? `${response.status} ${response.statusText}`)
    this.status = response.status
    this.code = body?.code ?? "UNKNOWN"
    this.data = body?.data ?? {}
    this.requestId = response.headers.get("x-error-id")
  }

  /** `TidegateError: NOT_FOUND (404): source src_1 was not found`: with the code, which programs and people look for. */
  override toString(): string {
    return `${this.name}: ${this.code} (${this.status}): ${this.message}`
  }
}
