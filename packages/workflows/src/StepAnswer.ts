import type { Values } from "@tidegate/model/Message"
import type { Json } from "@tidegate/model/Rule"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"
import { parsingBody } from "@tidegate/rules/RequestInput"
import { limits } from "./Limits.ts"
import { withoutSecrets } from "./Preview.ts"
import type { SecretTexts } from "./SecretTexts.ts"
import type { Resumable, StepAnswer, StepError } from "./StepKind.ts"

/**
 * The answer of a target that refused a step's call. It is part of the step's error, so it is limited, and its secrets are masked,
 * before anything reads it: conditions and templates read the same as people.
 */

/** Headers that help to understand a refusal; the others, cookies above all, are left out. */
const toldHeaders =
  /^(?:allow|content-(?:language|length|type)|date|link|location|retry-after|server|via|warning|www-authenticate|.*(?:rate-?limit|(?:request|correlation|trace)-?id|error|reason|deprecat).*)$/i
/** Limits of the headers: their number, and the characters of a name and of a value. */
const most = { headers: 30, name: 100, value: 500 } as const

const headersOf = (headers: Values): StepAnswer["headers"] => {
  const told: Array<readonly [string, string]> = []
  for (const [name, value] of Object.entries(headers)) {
    if (told.length >= most.headers) break
    if (name.length > most.name || !toldHeaders.test(name)) continue
    const text = typeof value === "string" ? value : value.join(", ")
    told.push([name, text.slice(0, most.value).toWellFormed()])
  }
  return Object.fromEntries(told)
}

/** The answer as it arrived. */
export interface ReceivedAnswer {
  readonly status: number
  readonly headers: Values
  readonly body: Uint8Array
  /** Whether the body is only the beginning. */
  readonly truncated: boolean
}

/** The answer as a part of an error, before its secrets are masked. JSON is parsed as in outputs. */
export function* answerOf({ body, headers, status, truncated }: ReceivedAnswer): Resumable<StepAnswer> {
  const parsed = body.length === 0 ? null : yield* parsingBody(headers, body)
  return { status, headers: headersOf(headers), body: parsed, truncated }
}

/** The most characters of a text whose JSON has no more than the limit: escapes take more than one. */
const fitting = (text: string): string => {
  let fit = text.slice(0, limits.answerLength)
  for (;;) {
    const { length } = JSON.stringify(fit)
    if (length <= limits.answerLength + 2) return fit.toWellFormed()
    fit = fit.slice(0, Math.floor((fit.length * limits.answerLength) / length) - 1)
  }
}

const opensJson = /^\s*[[{"]/

/**
 * The body without secrets, within the limit. Fails closed: of JSON that was cut, it is not known where secrets are, so nothing of
 * it is kept. Of longer JSON the beginnings of its lists and texts are kept.
 */
function* bodyOf(
  { body, truncated }: Pick<StepAnswer, "body" | "truncated">,
  texts: SecretTexts
): Resumable<Pick<StepAnswer, "body" | "truncated">> {
  if (typeof body === "string") {
    if (truncated && opensJson.test(body)) return { body: null, truncated }
    const text = fitting(body)
    const isCut = truncated || text.length < body.length
    const masked = isCut ? yield* texts.message(text) : text
    return { body: fitting((yield* withoutSecrets(masked, texts)) as string), truncated: isCut }
  }
  const isLong =
    jsonLengthWithin(body, limits.answerLength) === null || JSON.stringify(body).length > limits.answerLength
  const masked = yield* withoutSecrets(body, texts, isLong)
  // Masks are longer than some secrets, and escapes are longer than what they stand for.
  const isOver = JSON.stringify(masked).length > limits.answerLength
  return { body: isOver ? null : masked, truncated: truncated || isLong || isOver }
}

/** The answer with its secrets masked. When there were more secrets than a run remembers, none of its texts is kept. */
export function* maskedAnswer({ headers, status, ...rest }: StepAnswer, texts: SecretTexts): Resumable<StepAnswer> {
  if (texts.isFull) return { status, headers: {}, body: null, truncated: true }
  const shown = (yield* withoutSecrets(headers, texts)) as StepAnswer["headers"]
  return { status, headers: shown, ...(yield* bodyOf(rest, texts)) }
}

/** The error without its answer: what is kept as long as the run's record. */
export const withoutAnswer = (error: StepError): StepError => {
  if (error.response === undefined) return error
  const { response: _, ...rest } = error
  return rest
}

/** The size of an error's answer as JSON, in characters; it counts toward the size of the run. */
export const answerSize = (error: StepError | null): number =>
  error?.response === undefined ? 0 : (jsonLengthWithin(error.response as unknown as Json, limits.valueLength) ?? 0)
