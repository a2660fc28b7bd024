import { describe, expect, it } from "vitest"
import { Echoes } from "../src/Echoes.ts"

const secret = 'sk_live_"quoted"/51H8'
const mask = "****51H8"
const echoes = Echoes.of([secret, "another-credential"])!
const body = (text: string, isCut = false) => echoes.bytes(Buffer.from(text), isCut).toString()

describe("Credential in a target's answer", () => {
  it("A credential in an answer is masked anywhere: as it is, in JSON and in a URL", () => {
    expect(body(`${secret} and ${secret}, another-credential`)).toBe(`${mask} and ${mask}, ****tial`)
    expect(body(JSON.stringify({ got: secret }))).toBe(`{"got":"${mask}"}`)
    expect(body(`https://a.test/?key=${encodeURIComponent(secret)}`)).toBe(`https://a.test/?key=${mask}`)
    expect(echoes.text(`invalid key ${secret}`)).toBe(`invalid key ${mask}`)
    expect(echoes.values({ "x-key": secret, "x-keys": ["a", secret], none: undefined })).toEqual({
      "x-key": mask,
      "x-keys": ["a", mask],
      none: undefined
    })
  })

  it("A credential that the end of the stored answer cuts is removed", () => {
    expect(body(`{"got":"${secret.slice(0, 9)}`, true)).toBe('{"got":"')
    expect(body(`{"got":"${secret.slice(0, 9)}`, false)).toBe(`{"got":"${secret.slice(0, 9)}`)
    expect(body("another day", true)).toBe("another day")
  })

  it("Everything except credentials stays unchanged, byte for byte", () => {
    const other = Buffer.from([0, 255, 128, 10, 115, 107])
    expect(echoes.bytes(other, true)).toBe(other)
    expect(body("sk_live_ is a prefix")).toBe("sk_live_ is a prefix")
  })

  it("Missing and short credentials are not masked", () => {
    expect(Echoes.of([])).toBeNull()
    expect(Echoes.of(["1234567"])).toBeNull()
    expect(Echoes.with(null, "a-token-of-an-hour").text("a-token-of-an-hour")).toBe("****hour")
    expect(Echoes.with(echoes, "a-token-of-an-hour").text(`a-token-of-an-hour ${secret}`)).toBe(`****hour ${mask}`)
  })
})
