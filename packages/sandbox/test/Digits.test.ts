import { describe, expect, it } from "@effect/vitest"
import type { Schema } from "effect"
import { parseJson } from "@tidegate/json/JsonText"
import { roundedJson, withDigits } from "../src/Digits.ts"

const json = (text: string): Schema.Json => {
  const parsed = parseJson(text)
  if (parsed.kind !== "json") throw new Error(parsed.kind)
  return parsed.value as Schema.Json
}

interface Given {
  readonly id: number
  readonly parent: number
  readonly data: { readonly id: number }
  readonly list: ReadonlyArray<number>
  readonly items: ReadonlyArray<{ readonly qty: number }>
}

/** What code makes of a body, whose numbers are JavaScript's. */
const through = (body: string, code: (body: Given) => unknown): string => {
  const value = json(body)
  const given = roundedJson(value)
  const returned = JSON.stringify(code(JSON.parse(given.text)))
  return given.isRounded ? withDigits(value, returned) : returned
}

const id = "12345678901234567782"

describe("Long numbers in a transformed body", () => {
  it("Code receives long numbers rounded as JavaScript numbers", () => {
    expect(roundedJson(json(`{"id":${id},"n":1e400}`))).toEqual({
      text: '{"id":12345678901234567000,"n":null}',
      isRounded: true
    })
    expect(roundedJson(json(`{"id":"${id}","n":1.50}`))).toEqual({ text: `{"id":"${id}","n":1.5}`, isRounded: false })
  })

  it("Numbers that the code leaves in place keep all digits", () => {
    const body = `{"id":${id},"rate":0.1000000000000000055,"big":1e400,"n":1,"list":[${id},0.30000000000000000001]}`
    expect(through(body, (given) => ({ ...given, n: 2 }))).toBe(
      body.replace('"n":1', '"n":2').replace("1e400", "1e+400")
    )
  })

  it("A whole number keeps all digits wherever the code moves it", () => {
    const body = `{"data":{"id":${id}},"items":[{"id":9007199254740993,"qty":2},{"id":1,"qty":0}]}`
    expect(
      through(body, ({ data, items }) => ({
        order: data.id,
        items: items.filter((item) => item.qty > 0).toReversed()
      }))
    ).toBe(`{"order":${id},"items":[{"id":9007199254740993,"qty":2}]}`)
  })

  it("A moved number stays rounded if several numbers round to the same value", () => {
    const body = `{"id":${id},"parent":12345678901234567783,"list":[${id},1]}`
    const moved = ({ id, list, parent }: Given) => ({ moved: parent, id, list: list.toReversed() })
    expect(through(body, moved)).toBe(`{"moved":12345678901234567000,"id":${id},"list":[1,12345678901234567000]}`)
  })

  it("A number that the code sets does not get digits of the original", () => {
    const body = `{"rate":0.1000000000000000055,"id":${id}}`
    expect(through(body, () => ({ rate: 0.2, other: 0.1, id: null, text: id }))).toBe(
      `{"rate":0.2,"other":0.1,"id":null,"text":"${id}"}`
    )
  })

  it("Members of a body are kept whatever their name is", () => {
    expect(through(`{"__proto__":{"id":${id}},"x":1}`, (given) => given)).toBe(`{"__proto__":{"id":${id}},"x":1}`)
  })
})
