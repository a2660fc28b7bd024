import { describe, expect, it } from "vitest"
import { lookupOf, maskedKey, newProjectKey } from "../src/ProjectKey.ts"

const example = "gwp_7Qm2Xc9A_EXAMPLEexampleEXAMPLEexample00002JcXwk"
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

describe("Project key", () => {
  it("A project key contains eight visible lookup characters and ends with a checksum", () => {
    expect(lookupOf(example)).toBe("7Qm2Xc9A")
    expect(maskedKey("7Qm2Xc9A")).toBe("gwp_7Qm2Xc9A_****")
  })

  it("A project key with one character changed, removed or added is invalid", () => {
    for (let at = 0; at < example.length; at++) {
      for (const digit of digits) {
        const changed = example.slice(0, at) + digit + example.slice(at + 1)
        if (changed !== example) expect(lookupOf(changed), changed).toBe(null)
      }
      expect(lookupOf(example.slice(0, at) + example.slice(at + 1))).toBe(null)
      expect(lookupOf(`${example.slice(0, at)}0${example.slice(at)}`)).toBe(null)
    }
    for (const text of ["", "gwp_", `${example}\n`, ` ${example}`, example.replace("gwp_", "gwk_")]) {
      expect(lookupOf(text)).toBe(null)
    }
  })

  it("A project key is made from the given random digits and can be read back", () => {
    let drawn = 7
    for (let i = 0; i < 1_000; i++) {
      const key = newProjectKey((below) => (drawn = (drawn * 48_271) % 2_147_483_647) % below)
      expect(key).toMatch(/^gwp_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/)
      expect(key).toHaveLength(51)
      expect(lookupOf(key)).toBe(key.slice(4, 12))
    }
    expect(newProjectKey(() => 0)).toMatch(/^gwp_0{8}_0{32}/)
    expect(newProjectKey((below) => below - 1)).toMatch(/^gwp_z{8}_z{32}/)
  })
})
