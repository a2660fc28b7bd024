import type { Json } from "@tidegate/model/Rule"
import type { StepError } from "@tidegate/workflows/StepKind"
import { Result } from "effect"
import { answered } from "./Answers.ts"
import type { AccountCall } from "./Call.ts"
import type { Credentials } from "./Provider.ts"

/** Makes requests with a provider account from the inputs of a step. */

const noAccount: StepError = {
  code: "PROVIDER_ACCOUNT_NOT_CONNECTED",
  message: "the action names no provider account",
  final: true
}

/** A path with these segments and parameters. A segment is one name, whatever it contains. */
export const pathOf = (
  segments: ReadonlyArray<string>,
  query: Readonly<Record<string, string | number | null>> = {}
): string => {
  const parameters = Object.entries(query).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]]))
  const path = segments.map((segment) => `/${encodeURIComponent(segment)}`).join("")
  return parameters.length === 0 ? path : `${path}?${new URLSearchParams(parameters).toString()}`
}

/** The call for a request; `read` makes the output of the answer's JSON. */
export const accountRequest = (
  provider_key: string,
  { mode, values }: Credentials,
  request: AccountCall["request"],
  read: (body: Json) => Json
): Result.Result<AccountCall, StepError> => {
  const account_id = mode === "account" ? values["provider_account_id"] : null
  if (typeof account_id !== "string") return Result.fail(noAccount)
  return Result.succeed({
    kind: "account",
    provider_key,
    account_id,
    request,
    output: (answer) => Result.map(answered(answer), ({ body }) => read(body))
  })
}
