import { describe, expect, it } from "@effect/vitest"
import { verifyKey } from "discord-interactions"
import { generateKeyPairSync, sign } from "node:crypto"
import { bytes, changed, checkOf, hasCheck, inbound, now, problemOf } from "./inbound.ts"

const pair = () => {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  return { privateKey, hex: publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("hex") }
}
const ours = pair()
const other = pair()

const body = '{"type": 2, "data": {"name": "größe"}}'
const signed = (timestamp: string, text = body, key = ours.privateKey): string =>
  sign(null, bytes(timestamp + text), key).toString("hex")

for (const [type, tolerance] of [
  ["DISCORD", 300],
  ["DISCORD_EVENTS", 900]
] as const) {
  describe(type, () => {
    const check = checkOf(type, { public_key: ours.hex })
    const verify = (timestamp: unknown, signature: unknown, text: string | Uint8Array = body) =>
      check(
        inbound({
          body: text,
          headers: {
            "x-signature-ed25519": signature as string,
            "x-signature-timestamp": timestamp as string
          }
        })
      )
    const timestamp = String(now)
    const signature = signed(timestamp)

    it("Discord signatures are judged as the official library judges them", async () => {
      const cases: ReadonlyArray<readonly [boolean, string, string, string]> = [
        [true, body, signature, timestamp],
        [true, "", signed(timestamp, ""), timestamp],
        [false, changed(body), signature, timestamp],
        [false, JSON.stringify(JSON.parse(body)), signature, timestamp],
        [false, body, changed(signature), timestamp],
        [false, body, signed(timestamp, body, other.privateKey), timestamp],
        [false, body, signature, String(now + 1)]
      ]
      for (const [expected, text, signature, timestamp] of cases) {
        expect(await verifyKey(text, signature, timestamp, ours.hex)).toBe(expected)
        expect(verify(timestamp, signature, text)).toBe(expected)
      }
    })

    it("Discord signatures that are missing, repeated or spelled differently are refused", () => {
      for (const wrong of [
        undefined,
        "",
        [signature, signature],
        ` ${signature}`,
        signature.slice(2),
        `${signature}00`
      ]) {
        expect(verify(timestamp, wrong)).toBe(false)
      }
      expect(verify(timestamp, Buffer.from(signature, "hex").toString("base64"))).toBe(false)
      for (const wrong of [undefined, "", [timestamp, timestamp], "now", `+${timestamp}`, `${timestamp}.0`, "1e9"]) {
        expect(verify(wrong, signed(String(wrong)))).toBe(false)
      }
      expect(verify(timestamp, signature.toUpperCase())).toBe(true)
    })

    it("Discord signatures outside the timestamp tolerance are refused", () => {
      for (const [offset, expected] of [
        [-tolerance, true],
        [300, true],
        [-tolerance - 1, false],
        [301, false]
      ] as const) {
        const at = String(now + offset)
        expect(verify(at, signed(at)), `${offset}`).toBe(expected)
      }
    })

    it("Discord settings accept only a public key in hex of the right length", () => {
      expect(problemOf(type, "public_key", ours.hex)).toBeNull()
      expect(problemOf(type, "public_key", ours.hex.toUpperCase())).toBeNull()
      const base64 = Buffer.from(ours.hex, "hex").toString("base64")
      for (const wrong of ["", "0x" + ours.hex.slice(2), ours.hex.slice(2), `${ours.hex}00`, base64]) {
        expect(problemOf(type, "public_key", wrong)).not.toBeNull()
        expect(hasCheck(type, { public_key: wrong })).toBe(false)
      }
      expect(hasCheck(type, {})).toBe(false)
    })

    it("Discord settings refuse weak public keys, for which anybody can make signatures", () => {
      const point = (start: string, rest = "00", end = rest) => start + rest.repeat(30) + end
      for (const weak of [
        point("00"),
        point("00", "00", "80"),
        point("01"),
        point("01", "00", "80"),
        point("ec", "ff", "7f"),
        point("ec", "ff", "ff")
      ]) {
        expect(hasCheck(type, { public_key: weak }), weak).toBe(false)
      }
    })
  })
}
