import { expect, it } from "@effect/vitest"
import { atOnce } from "@tidegate/model/Parts"
import { SecretTexts } from "../src/SecretTexts.ts"

const secret = 's3cr3t "Value" & more/1'

it("a secret is masked in the copies that operations and code make of it", () => {
  const texts = new SecretTexts()
  atOnce(texts.learn({ password: secret }))
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
    expect(atOnce(texts.masked({ result: `it is ${copy}.` }))).toEqual({
      result: copy.startsWith('"') ? 'it is "[REDACTED]".' : "it is [REDACTED]."
    })
  }
  expect(atOnce(texts.masked({ result: "it is another value" }))).toEqual({ result: "it is another value" })
})
