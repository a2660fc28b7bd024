import { Schema } from "effect"

/** An invalid condition. `path` names the place, like `total.$gt` or `$or[0].type`. */
export class ConditionInvalid extends Schema.TaggedError<ConditionInvalid>()("ConditionInvalid", {
  path: Schema.String,
  message: Schema.String
}) {}

/** Refuses the condition at `path`. Compilers throw it; the package's public functions return a `Result`. */
export const refuse = (path: string, message: string): never => {
  throw new ConditionInvalid({ path, message })
}

const plainKey = /^[\w$-]{1,64}$/

/** The path of the value under `key`. */
export const below = (path: string, key: string | number): string => {
  if (typeof key === "number") return `${path}[${key}]`
  if (plainKey.test(key)) return path === "" ? key : `${path}.${key}`
  return `${path}[${JSON.stringify(key.slice(0, 64))}]`
}
