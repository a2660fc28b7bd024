import { expect } from "@effect/vitest"
import { Result, type Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { asObject, orInvalid } from "../src/Input.ts"
import type { AnyResource, ChangeOf, FieldsOf, Situation } from "../src/Resource.ts"

export const situation: Situation = { id: null, now: new Date(0), ingress: { baseUrl: "https://in.test/e" } }

/** What a create stores of a body as it was written, or what is wrong: as it is judged on its way. */
export const created = <R extends AnyResource>(
  resource: R,
  input: Schema.Json,
  given: Partial<Situation> = {}
): Result.Result<FieldsOf<R>, GatewayError> => {
  const at = { ...situation, ...given }
  return orInvalid(asObject(input)).pipe(
    Result.flatMap((written) => resource.write.judge(written, at)),
    Result.flatMap((message) => resource.create(message, at))
  ) as Result.Result<FieldsOf<R>, GatewayError>
}

/** What a change in part makes of what is stored. */
export const changed = <R extends AnyResource>(
  resource: R,
  stored: FieldsOf<R>,
  input: Schema.Json,
  given: Partial<Situation> = {}
): Result.Result<ChangeOf<R>, GatewayError> => {
  const at = { ...situation, ...given }
  return orInvalid(asObject(input)).pipe(
    Result.flatMap((written) => resource.patch.judge(written, at)),
    Result.flatMap((message) => resource.change(message, at)(stored))
  ) as Result.Result<ChangeOf<R>, GatewayError>
}

/** `path: message` of every wrong field. */
export const faults = <A>(result: Result.Result<A, { readonly code: string; readonly data?: Schema.Json }>) => {
  if (Result.isSuccess(result)) return expect.fail(`it was accepted: ${JSON.stringify(result.success)}`)
  expect(result.failure.code).toBe("VALIDATION_ERROR")
  const { fields } = result.failure.data as { readonly fields: ReadonlyArray<{ path: string; message: string }> }
  return fields.map(({ message, path }) => `${path}: ${message}`)
}
