import { Data } from "effect"
import { ConnectionEndedError, TidegateError } from "@tidegate/client/source"

/** What the program ends with, for scripts. 130: it was interrupted. */
export const exitCodes = {
  /** The gateway refused, or something else went wrong. */
  failed: 1,
  /** The command line, or a file that it names, is wrong. */
  usage: 2,
  /** No credentials, wrong ones, or ones that may not. */
  forbidden: 3,
  /** There is no such thing. */
  missing: 4,
  /** The gateway cannot be reached, is busy, or failed: the same may succeed later. */
  unavailable: 5,
  /** `import --plan`: the gateway is not as the file says. */
  differs: 6
} as const

/** Why a command ends without having done what it was asked. */
export class CliFailure extends Data.TaggedError("CliFailure")<{
  readonly code: keyof typeof exitCodes
  readonly message: string
  /** The gateway's own code, and what it adds. */
  readonly reason?: string
  readonly data?: unknown
}> {}

export const usage = (message: string): CliFailure => new CliFailure({ code: "usage", message })

const byStatus = (status: number): keyof typeof exitCodes => {
  if (status === 401 || status === 403) return "forbidden"
  if (status === 404) return "missing"
  return status === 429 || status >= 500 ? "unavailable" : "failed"
}

const byCloseCode: Readonly<Record<number, keyof typeof exitCodes>> = {
  4401: "forbidden",
  4403: "forbidden",
  4404: "missing"
}

/** Each member that is wrong, by its name: the message of the answer tells only the first. */
const membersOf = ({ data }: TidegateError): string => {
  const fields = data["fields"]
  if (!Array.isArray(fields) || fields.length < 2) return ""
  return (fields as ReadonlyArray<{ readonly path: string; readonly message: string }>)
    .slice(0, 20)
    .map(({ message, path }) => `\n  ${path} ${message}`)
    .join("")
}

/** Of whatever was thrown by a call. */
export const failureOf = (error: unknown): CliFailure => {
  if (error instanceof CliFailure) return error
  if (error instanceof TidegateError) {
    const told = error.requestId === null ? "" : ` (${error.requestId})`
    return new CliFailure({
      code: byStatus(error.status),
      message: `${error.message}${told}${membersOf(error)}`,
      reason: error.code,
      data: error.data
    })
  }
  if (error instanceof ConnectionEndedError) {
    const message = error.code === 4409 ? "another listener has taken over this destination" : error.message
    return new CliFailure({ code: byCloseCode[error.code] ?? "failed", message, reason: String(error.code) })
  }
  const { cause, message, name } = error as Error & {
    readonly cause?: { readonly code?: string; readonly message?: string }
  }
  // `fetch` says so, and a mistake of ours is a TypeError, too.
  const isNetwork =
    name === "TimeoutError" ||
    (error instanceof TypeError && (typeof cause?.code === "string" || message === "fetch failed"))
  return isNetwork
    ? new CliFailure({
        code: "unavailable",
        message: `the gateway cannot be reached: ${cause?.code ?? cause?.message ?? message}`
      })
    : new CliFailure({ code: "failed", message })
}
