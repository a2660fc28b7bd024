import { Data } from "effect"
import { ConnectionEndedError, TidegateError } from "@tidegate/client/source"

/** The exit codes, for scripts. 130: interrupted. */
export const exitCodes = {
  /** The gateway refused the call, or another error occurred. */
  failed: 1,
  /** The command line, or a file that it names, is invalid. */
  usage: 2,
  /** Missing or wrong credentials, or insufficient rights. */
  forbidden: 3,
  /** The named thing does not exist. */
  missing: 4,
  /** The gateway cannot be reached, is busy, or failed: the same command may succeed later. */
  unavailable: 5,
  /** `import --plan`: the gateway differs from the file. */
  differs: 6
} as const

/** Why a command has failed. */
export class CliFailure extends Data.TaggedError("CliFailure")<{
  readonly code: keyof typeof exitCodes
  readonly message: string
  /** The gateway's own error code, and its details. */
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

/** All invalid members, by name: the message of the answer contains only the first. */
const membersOf = ({ data }: TidegateError): string => {
  const fields = data["fields"]
  if (!Array.isArray(fields) || fields.length < 2) return ""
  return (fields as ReadonlyArray<{ readonly path: string; readonly message: string }>)
    .slice(0, 20)
    .map(({ message, path }) => `\n  ${path} ${message}`)
    .join("")
}

/** Converts any error of a call. */
export const failureOf = (error: unknown): CliFailure => {
  if (error instanceof CliFailure) return error
  if (error instanceof TidegateError) {
    const requestId = error.requestId === null ? "" : ` (${error.requestId})`
    return new CliFailure({
      code: byStatus(error.status),
      message: `${error.message}${requestId}${membersOf(error)}`,
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
  // `fetch` reports it as a TypeError, and so would a bug of ours.
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
