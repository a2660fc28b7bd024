import { Redacted, Result } from "effect"
import { describe, expect, it } from "vitest"
import { redisAddress } from "../src/RedisAddress.ts"

const read = (url: string) => redisAddress(Redacted.make(url))

describe("Redis address", () => {
  it.each([
    ["redis://cache", { host: "cache", port: 6379, database: 0, isEncrypted: false, username: null }],
    ["redis://:p%40ss@127.0.0.1:6380/2", { host: "127.0.0.1", port: 6380, database: 2, isEncrypted: false }],
    ["rediss://app:secret@[::1]:6390", { host: "::1", port: 6390, isEncrypted: true, username: "app" }]
  ])("Redis address %s is parsed", (url, parts) => {
    expect(Result.getOrThrow(read(url))).toMatchObject(parts)
  })

  it("Redis address has its user and password decoded and hides the password", () => {
    const address = Result.getOrThrow(read("redis://u%3A:p%40ss@cache"))
    expect([address.username, Redacted.value(address.password!)]).toEqual(["u:", "p@ss"])
    expect(JSON.stringify(address)).not.toContain("p@ss")
  })

  it.each([
    "",
    "cache:6379",
    "http://:hidden@cache",
    "redis://",
    "redis://:hidden@cache/name",
    "redis://:hidden@cache/0?tls=true",
    "redis://:hidden@cache#x",
    "redis://hidden@cache",
    "redis://:hidden%zz@cache",
    "redis://:hidden@cache:99999"
  ])("Redis address %j is refused without quoting it", (url) => {
    const refused = read(url)
    expect(Result.isFailure(refused)).toBe(true)
    expect(JSON.stringify(refused)).not.toMatch(/hidden|cache/)
  })
})
