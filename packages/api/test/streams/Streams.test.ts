import { describe, expect, it } from "vitest"
import { Headers } from "effect/http"
import { credentialsOf, echoed, offeredProtocols } from "../../src/streams/StreamCredentials.ts"
import { newOf } from "../../src/streams/Watches.ts"

const base64url = (text: string): string => Buffer.from(text).toString("base64url")
const read = (protocols: ReadonlyArray<string>, headers: Record<string, string> = {}) =>
  credentialsOf(Headers.fromInput(headers), protocols)

describe("Handshake of a stream", () => {
  it.each([
    [["token.pbn_1"], {}, { bin: "pbn_1", caller: null, team: null }],
    [["token.gwk_key"], {}, { bin: null, caller: "gwk_key", team: null }],
    [["team.gwk_key"], {}, { bin: null, caller: "gwk_key", team: null }],
    [["team.tm_a", "token.ses_1"], {}, { bin: null, caller: "ses_1", team: "tm_a" }],
    [["token.pbn_1", "team.ses_1"], {}, { bin: "pbn_1", caller: "ses_1", team: null }],
    [["bin.v1"], { authorization: "bearer gwk_ä", "x-team-id": "tm_a" }, { bin: null, caller: "gwk_ä", team: "tm_a" }],
    [[], { "x-bin-token": "pbn_1" }, { bin: "pbn_1", caller: null, team: null }],
    [[], { authorization: "Bearer pbn_1" }, { bin: "pbn_1", caller: null, team: null }],
    [["token.", "team."], {}, { bin: null, caller: null, team: null }],
    [[], { authorization: "Basic Z3drX2tleQ==" }, { bin: null, caller: null, team: null }]
  ])("Handshake with protocols %j and headers %j yields its credentials and team", (protocols, headers, brought) => {
    const encoded = protocols.map((one) =>
      one.replace(/^(token|team)\.(.*)$/, (_, name, value) => `${name}.${base64url(value)}`)
    )
    expect(read(encoded, headers as Record<string, string>)).toEqual(brought)
  })

  it("Handshake accepts a few valid protocol names, each once", () => {
    const offered = (text: string) => offeredProtocols(Headers.fromInput({ "sec-websocket-protocol": text }))
    expect(offeredProtocols(Headers.empty)).toEqual([])
    expect(offered("a, b,c")).toEqual(["a", "b", "c"])
    for (const bad of [
      "",
      "a,,b",
      "a,a",
      "a b",
      "a/b",
      "ä",
      Array.from({ length: 9 }, (_, i) => `p${i}`).join(),
      "x".repeat(3_000)
    ]) {
      expect(offered(bad), bad).toBeNull()
    }
  })

  it("Handshake answer contains no credential", () => {
    expect(echoed(["token.a", "tunnel.v1", "team.b", "bin.v1"], "bin.v1")).toBe("bin.v1")
    expect(echoed(["token.a", "team.b"], "bin.v1")).toBe("team.b")
    expect(echoed(["token.a", "tunnel.v1"], "bin.v1")).toBeNull()
    expect(echoed(["token.a", "bin.v1"], "tunnel.v1")).toBeNull()
  })
})

describe("New rows of a stream", () => {
  const ids = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => `req_${1_000 + from + i}`)

  it("New rows of a stream are the unknown ids in order, including late ones", () => {
    expect(newOf(new Set(["b", "d"]), ["a", "b", "c", "d", "e"])).toEqual({ shown: ["a", "c", "e"], isCut: false })
    expect(newOf(new Set(), [])).toEqual({ shown: [], isCut: false })
  })

  it("New rows of a stream are cut to the newest when there are too many", () => {
    expect(newOf(new Set(ids(0, 100)), ids(0, 200))).toEqual({ shown: ids(100, 200), isCut: false })
    expect(newOf(new Set(ids(0, 100)), ids(0, 201))).toEqual({ shown: ids(101, 201), isCut: true })
    // Everything that was seen is new: there may have been more before it.
    expect(newOf(new Set(), ids(0, 250)).isCut).toBe(true)
  })
})
