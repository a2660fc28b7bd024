import type { Json } from "@tidegate/client/source"

/*
 * JSON whose numbers keep all their digits. A number that JavaScript does not hold exactly is an object of the platform (`JSON.rawJSON`):
 * only `JSON.stringify` shows it, and it has no members. A browser that is too old for that rounds such numbers.
 */

const { isRawJSON, rawJSON } = JSON as {
  readonly rawJSON?: (this: void, text: string) => unknown
  readonly isRawJSON?: (this: void, value: unknown) => boolean
}

/**
 * Finds each number that JavaScript would write in another way: with an exponent, with a zero at its end, as -0, below a millionth, or of 16
 * characters or more. It may also find text that only looks like one. The callback that keeps such numbers takes ten times as long as
 * parsing, and most answers have none.
 */
const otherwise =
  /(?:^|[[:,\s])-?(?:\d+(?:\.\d+)?[eE]|\d+\.\d*0(?:[,\]}\s]|$)|0\.0{6}|[\d.]{16})|(?:^|[[:,\s])-0(?:[,\]}\s]|$)/

export const exactJson: Json = {
  parse: (text) =>
    rawJSON === undefined || !otherwise.test(text)
      ? JSON.parse(text)
      : JSON.parse(text, ((_name: string, value: unknown, { source }: { readonly source?: string }) =>
          typeof value === "number" && source !== undefined && JSON.stringify(value) !== source
            ? rawJSON(source)
            : value) as (name: string, value: unknown) => unknown),
  stringify: JSON.stringify
}

/** Whether a value has members or elements. */
export const isNested = (value: unknown): value is object =>
  typeof value === "object" && value !== null && isRawJSON?.(value) !== true

/** Whether a value is an object with members. */
export const isMembers = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isNested(value) && !Array.isArray(value)

/** The number that a field for numbers says, with all its digits. */
export const numberOf = (text: string): unknown => {
  try {
    return exactJson.parse(text)
  } catch {
    // What JSON does not have: 007, .5.
    return Number(text)
  }
}

/** Whether a value contains such a number. Uses its own stack, because a stranger may nest deeply. */
export const hasExactNumber = (value: unknown): boolean => {
  const open: Array<unknown> = [value]
  while (open.length > 0) {
    const one = open.pop()
    if (typeof one !== "object" || one === null || ArrayBuffer.isView(one)) continue
    if (!isNested(one)) return true
    for (const member of Object.values(one)) open.push(member)
  }
  return false
}
