import { Effect } from "effect"
import { ProviderError } from "@tidegate/channels/Adapter"
import type { AccountKind } from "@tidegate/channels/SourceProvider"
import { isJsonNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { parseJson } from "@tidegate/json/JsonText"
import { isStorable } from "@tidegate/resources/Input"
import { seenOf } from "@tidegate/resources/Members"
import { Echoes } from "@tidegate/redaction/Echoes"
import { passing, type ProviderExchange } from "./ProviderExchange.ts"

/** Whose account it is, as the provider says. */
export interface Identity {
  readonly id: string | null
  readonly name: string | null
  readonly email: string | null
}

const nobody: Identity = { id: null, name: null, email: null }

const largestAnswer = 65_536
const longest = 155

/** The member at a path, where a number is an index of a list. */
const memberAt = (root: unknown, path: ReadonlyArray<string>): unknown => {
  let value = root
  for (const step of path) {
    value = Array.isArray(value)
      ? value[Number(step)]
      : isJsonObject(value) && Object.hasOwn(value, step)
        ? value[step]
        : null
  }
  return value
}

/** A text or a number, with all of its digits; null: neither, or nothing that a person can read. */
const wordAt = (root: unknown, path: ReadonlyArray<string>): string | null => {
  const value = path.length === 0 ? null : memberAt(root, path)
  const text = typeof value === "string" ? value : isJsonNumber(value) ? String(value) : ""
  if (!isStorable(text)) return null
  const word = Array.from(seenOf(text).trim()).slice(0, longest).join("")
  return word === "" ? null : word
}

/**
 * Asks the provider whose credentials these are. This also shows that it accepts them. A provider without such a call accepts them
 * or refuses them later.
 */
export const readIdentity = Effect.fnUntraced(function* (
  exchange: ProviderExchange,
  { identity }: AccountKind,
  base_url: string,
  headers: Readonly<Record<string, string>>,
  secrets: ReadonlyArray<string>
): Effect.fn.Return<Identity, ProviderError> {
  if (identity === null) return nobody
  const { body, status, truncated } = yield* exchange({
    method: "GET",
    url: base_url + identity.path,
    headers: { accept: "application/json", ...headers },
    authorized: true,
    maxAnswerBytes: largestAnswer,
    echoes: Echoes.of(secrets)
  })
  if (status !== 200) {
    const isRefusal = status >= 400 && status < 500 && status !== 429
    const message = `${isRefusal ? "the provider refuses the credentials" : "the provider does not say whose account it is"}: HTTP ${status}`
    return yield* new ProviderError({
      code: isRefusal ? "ACCOUNT_UNAUTHORIZED" : "PROVIDER_UNAVAILABLE",
      message,
      permanent: isRefusal,
      status,
      retryAfterMs: null
    })
  }
  const parsed = truncated ? null : parseJson(body)
  if (parsed?.kind !== "json") return yield* passing("PROVIDER_ANSWER_INVALID", "the provider's identity is no JSON")
  return {
    id: wordAt(parsed.value, identity.id),
    name: wordAt(parsed.value, identity.name),
    email: wordAt(parsed.value, identity.email)
  }
})
