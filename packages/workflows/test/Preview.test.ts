import { createHash } from "node:crypto"
import type { Json } from "@tidegate/model/Rule"
import { readJson } from "@tidegate/json/JsonText"
import { describe, expect, it } from "vitest"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { type Preview, previewOf, previewsIn, storedPreviewOf } from "../src/Preview.ts"
import { SecretTexts } from "../src/SecretTexts.ts"

const shown = (value: Json, secretNames: ReadonlyArray<string> = []) => {
  const parts = previewOf(value, secretNames)
  for (;;) {
    const part = parts.next()
    if (part.done === true) return part.value
  }
}

const mask = "[REDACTED]"

/** The preview of a value in a run in which `others` were before. */
const shownAfter = (value: Json, ...others: ReadonlyArray<Json>) => {
  const texts = new SecretTexts()
  for (const other of others) runToEnd(texts.learn(other))
  return runToEnd(previewOf(value, [], texts))
}

describe("Preview in a run", () => {
  it("A preview in a run masks values that had a secret name before, wherever they are", () => {
    const trigger = {
      password: "open sesame",
      user: { credentials: { pin: 7391, hint: "mother" } },
      list: [{ name: "api_key", value: "k-123456" }, "Authorization", "plain words"],
      short: { token: "abc" }
    }
    const value = {
      input: "open sesame",
      text: "<open sesame>",
      n: 7391,
      of: ["mother", "k-123456"],
      "plain words": "abc"
    }
    const preview = shownAfter(value, trigger)
    expect(preview.preview).toEqual({
      input: mask,
      text: `<${mask}>`,
      n: mask,
      of: [mask, mask],
      [mask]: "abc"
    })
    expect(preview.redacted).toBe(true)
  })

  it("A preview masks a secret by its whole value, even where only a part is shown", () => {
    const secret = "s".repeat(2_000)
    const preview = shownAfter({ input: secret, more: "x".repeat(20_000) }, { password: secret })
    expect(preview).toMatchObject({ truncated: true, redacted: true, preview: { input: mask } })
    expect(preview.redacted_paths).toEqual(["input"])
  })

  it("A preview without secrets is the value, and it is empty when a run has too many secrets", () => {
    const value = { a: "text" }
    expect(shownAfter(value, { password: "other" }).preview).toBe(value)
    const many = Array.from({ length: 101 }, (_, n) => ({ token: `token-${n}` }))
    expect(shownAfter(value, many)).toMatchObject({ available: false, preview: null, reason: "too_large" })
  })
})

describe("Stored preview", () => {
  /** The preview of a value that was stored as the input of a step, and its text. */
  const storedAndRead = (value: Json, texts = new SecretTexts()): readonly [text: string, read: Preview] => {
    const stored = storedPreviewOf(value, texts, { left: 1_048_576 })
    const text = typeof stored === "string" ? stored : runToEnd(stored)
    return [text, previewsIn(`{"3":{"input":${text}}}`)[0]![1].input!]
  }

  it("A preview that shows the whole value is stored without its size and hash, and reads as the one that was made", () => {
    const values: ReadonlyArray<Json> = [
      null,
      "",
      {},
      { id: "o_1", lines: [1, 0.1, 1e-7, 5e-324], empty: null },
      { b: 1, a: 2, 10: "ten", 2: "two", ["__proto__"]: { of: 3 } },
      { text: 'ü 🙂 \u0000 \ud800 "quoted" \\ \u2028' },
      { size_bytes: 7, sha256: "of the value", preview: "too" }
    ]
    for (const value of values) {
      const [text, read] = storedAndRead(value)
      expect(text).toBe(`{"preview":${JSON.stringify(value)}}`)
      expect(read).toEqual(shown(value))
    }
  })

  it("A preview with masks, of a part of a value, or with numbers that may be cards, is stored with size and hash of the whole value", () => {
    const values: ReadonlyArray<Json> = [
      { password: "open sesame" },
      { text: "x".repeat(20_000) },
      { text: "x".repeat(300_000) },
      [1e21, 4_111_111_111_111_112],
      readJson('{"large":12345678901234567891,"exact":0.1000000000000000055,"far":1e400}') as Json
    ]
    for (const value of values) {
      const [text, read] = storedAndRead(value)
      expect(text).toContain(`"size_bytes":${JSON.stringify(value).length}`)
      expect(read).toEqual(shown(value))
    }
  })

  it("A preview that an earlier version stored with its size and hash is read as it is stored", () => {
    const text = '{"0":{"output":{"size_bytes":3,"sha256":"sha256:00","preview":"a"}}}'
    expect(previewsIn(text)).toEqual([[0, { output: { ...shown("a"), size_bytes: 3, sha256: "sha256:00" } }]])
  })
})

describe("Preview", () => {
  it("A preview of a small value without secrets is the value itself", () => {
    const value = { id: "o_1", lines: [1, 2, { sku: "a" }], empty: null }
    expect(shown(value)).toMatchObject({
      available: true,
      redacted: false,
      truncated: false,
      size_bytes: JSON.stringify(value).length,
      sha256: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      preview: value,
      redacted_paths: [],
      reason: null
    })
  })

  it("A preview masks values that have a secret name or look secret, and lists their paths", () => {
    const value = {
      id: 1,
      headers: { authorization: "Bearer abcdefghijkl" },
      body: { list: [{ api_key: "k-1" }, "paid with 4111 1111 1111 1111 today", 4111111111111111], plain: "4111 1111" }
    }
    const preview = shown(value)
    expect(preview.preview).toEqual({
      id: 1,
      headers: { authorization: mask },
      body: { list: [{ api_key: mask }, `paid with ${mask} today`, mask], plain: "4111 1111" }
    })
    expect(preview.redacted).toBe(true)
    expect(preview.redacted_paths).toEqual([
      "headers.authorization",
      "body.list[0].api_key",
      "body.list[1]",
      "body.list[2]"
    ])
  })

  it("A preview masks by the words of a name, and not by letters inside words", () => {
    const names = [
      "card_pin",
      "customerSsn",
      "token_of_guest",
      "IBAN",
      "session-key",
      "mysql_pwd",
      "X-Auth-User",
      "cvc2"
    ]
    const value = Object.fromEntries(names.map((name) => [name, "v"]))
    expect(shown(value).preview).toEqual(Object.fromEntries(names.map((name) => [name, mask])))
    const plain = { shipping: "v", opinion: "v", author: "v", obsession: "v", pinned_by: "v" }
    expect(shown(plain).preview).toEqual(plain)
  })

  it("A preview also masks names that the caller declares secret", () => {
    expect(shown({ tenant_code: "x-1234567890" }, ["tenant_code"]).preview).toEqual({ tenant_code: mask })
  })

  it("A preview does not mask other long numbers", () => {
    const value = { order: "4111111111111112", at: 1_767_225_600_000, phone: "+49 30 1234567" }
    expect(shown(value).preview).toEqual(value)
  })

  it("A preview shows the beginning of a large value", () => {
    const value = { text: "word ".repeat(1_000), list: Array.from({ length: 5_000 }, (_, i) => i) }
    const { preview, truncated } = shown(value)
    expect(truncated).toBe(true)
    const { list, text } = preview as { readonly list: ReadonlyArray<number>; readonly text: string }
    expect(text).toHaveLength(1_025)
    expect(list).toHaveLength(20)
  })

  it("A preview is empty for a very large value, and shows nothing that is nested too deep", () => {
    expect(shown("x".repeat(300_000))).toMatchObject({ available: false, preview: null, reason: "too_large" })
    let deep: Json = "sk_live_abcdefghijkl"
    for (let level = 0; level < 1_000; level++) deep = [deep]
    expect(JSON.stringify(shown(deep).preview)).not.toContain("sk_live")
  })

  it("A preview contains no planted secret, wherever it is", () => {
    const secrets = [
      "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
      "gwk_0123456789abcdef0123456789abcdef",
      "5500005555555559",
      "-----BEGIN PRIVATE KEY-----MIIEvQIBADANBg-----END PRIVATE KEY-----"
    ]
    for (const secret of secrets) {
      const places: ReadonlyArray<Json> = [
        secret,
        { note: `see ${secret} there` },
        [[{ a: [secret] }]],
        { json: JSON.stringify({ inner: secret }) },
        { filler: "y".repeat(20_000), after: secret }
      ]
      for (const place of places) expect(JSON.stringify(shown(place).preview), secret).not.toContain(secret)
    }
  })

  it("A preview beyond the shared size limit shows only size and hash", () => {
    const room = { left: 25_000 }
    const [first, second, third] = ["a", "b", "c"].map((of) =>
      runToEnd(previewOf(of.repeat(12_000), [], undefined, room))
    )
    expect([first!.available, second!.available]).toEqual([true, true])
    expect(third).toMatchObject({ available: false, preview: null, reason: "too_large", size_bytes: 12_002 })
    expect(third!.sha256).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(runToEnd(previewOf("small", [], undefined, room))).toMatchObject({ available: true, preview: "small" })
  })

  it("A preview hashes a long value in parts with the same result", () => {
    const long = "é😀".repeat(1_000_000)
    const work = previewOf(long)
    let parts = 0
    let part = work.next()
    for (; part.done !== true; part = work.next()) parts++
    expect(parts).toBeGreaterThan(6)
    const text = JSON.stringify(long)
    const sha256 = `sha256:${createHash("sha256").update(text).digest("hex")}`
    expect(part.value).toMatchObject({ reason: "too_large", size_bytes: Buffer.byteLength(text), sha256 })
  })

  it("A preview's redacted paths are short, whatever the names are", () => {
    const value = {
      ["x".repeat(10_000)]: Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`${i}_password`, "abcdef"]))
    }
    const { redacted_paths } = shown(value)
    expect(redacted_paths).toHaveLength(90)
    expect(Math.max(...redacted_paths.map(({ length }) => length))).toBeLessThan(310)
  })

  it("A preview masks secrets below names that JavaScript objects have", () => {
    const preview = shown(
      JSON.parse('{"__proto__": {"password": "open sesame"}, "constructor": "open"}') as Json
    ).preview
    expect(JSON.stringify(preview)).toBe(`{"__proto__":{"password":"${mask}"},"constructor":"open"}`)
  })
})
