import { expect, it } from "@effect/vitest"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { SecretTexts } from "../src/SecretTexts.ts"

const secret = 's3cr3t "Value" & more/1'

it("A secret is masked in the copies that operations and code make of it", () => {
  const texts = new SecretTexts()
  runToEnd(texts.learn({ password: secret }))
  const copies = [
    secret.toUpperCase(),
    secret.toLowerCase(),
    Buffer.from(secret).toString("base64"),
    Buffer.from(secret).toString("base64url"),
    Buffer.from(secret).toString("hex"),
    encodeURIComponent(secret),
    encodeURIComponent(secret).replaceAll("%20", "+"),
    JSON.stringify(secret)
  ]
  for (const copy of copies) {
    expect(runToEnd(texts.masked({ result: `it is ${copy}.` }))).toEqual({
      result: copy.startsWith('"') ? 'it is "[REDACTED]".' : "it is [REDACTED]."
    })
  }
  expect(runToEnd(texts.masked({ result: "it is another value" }))).toEqual({ result: "it is another value" })
})

it("A secret is masked in any letter case, inside longer base64, and escaped for Markdown", () => {
  const secret = "s3cr3t_value*9"
  const texts = new SecretTexts()
  runToEnd(texts.learn({ password: secret, pin: "aB3d" }))
  const shown = (result: string) => runToEnd(texts.masked({ result })) as { readonly result: string }
  for (const copy of [
    "S3cr3t_value*9",
    "S3CR3T_Value*9",
    String.raw`s3cr3t\_value\*9`,
    Buffer.from(secret).toString("hex").toUpperCase()
  ]) {
    expect([copy, shown(`it is ${copy}.`).result]).toEqual([copy, "it is [REDACTED]."])
  }
  expect(shown("AB3D").result).toBe("[REDACTED]")
  for (const before of ["", "u:", "us:", "use:", "user:"]) {
    for (const encoding of ["base64", "base64url"] as const) {
      const encoded = Buffer.from(`${before}${secret}: and more`).toString(encoding)
      const { result } = shown(encoded)
      expect(result).toContain("[REDACTED]")
      // What is left around it tells less than a character of it at either end.
      const left = result
        .split("[REDACTED]")
        .map((part) => Buffer.from(part, encoding).toString("latin1"))
        .join("")
      expect(left).not.toMatch(/s3|cr3|val|ue\*/)
    }
  }
  // A text whose letters grow in another case keeps its places.
  expect(shown(`\u0130\u0130 ${secret.toUpperCase()}!`).result).toBe("\u0130\u0130 [REDACTED]!")
  expect(runToEnd(texts.message("cut off in S3CR3T_va"))).toBe("cut off in [REDACTED]")
})
