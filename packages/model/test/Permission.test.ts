import { describe, expect, it } from "vitest"
import {
  administering,
  answeringPayloads,
  bySessions,
  editing,
  executing,
  lackingOf,
  notByProjectKeys,
  ofOneself,
  type Principals,
  reading,
  type Scope,
  scopes,
  scopesFor,
  tunneling
} from "../src/Permission.ts"

const route = "POST:/v1/events/:id/retry"
const holding = (...held: ReadonlyArray<Scope>) => ({ isTeamKey: false, scopes: held, grants: [route] })

describe("what a key lacks", () => {
  it.each<[string, Principals, Scope]>([
    ["reads", reading, "control:read"],
    ["changes", editing, "control:edit"],
    ["what happens", executing, "control:execute"],
    ["tunnels", tunneling, "tunnel:connect"]
  ])("for %s is its scope and no other", (_, permission, scope) => {
    expect(lackingOf(permission, route, holding(scope))).toBe(null)
    const others = scopes.filter((one) => one !== scope)
    expect(lackingOf(permission, route, holding(...others))).toEqual({ what: "scope", scope })
  })

  it("for what happens is the grant of that very route, after the scope", () => {
    const key = { ...holding("control:execute"), grants: ["POST:/v1/requests/:id/retry"] }
    expect(lackingOf(executing, route, key)).toEqual({ what: "grant" })
    expect(lackingOf(executing, route, { ...key, grants: [] })).toEqual({ what: "grant" })
    expect(lackingOf(executing, route, { ...key, grants: [route] })).toBe(null)
    expect(lackingOf(executing, route, { ...key, scopes: [] })).toEqual({ what: "scope", scope: "control:execute" })
    // A grant is nothing to what is not executed.
    expect(lackingOf(reading, route, { ...key, scopes: ["control:read"], grants: [] })).toBe(null)
  })

  it("for what answers stored payloads is the right to read, too, unless it is a read", () => {
    const key = holding("control:edit")
    expect(scopesFor(answeringPayloads(editing))).toEqual(["control:edit", "control:read"])
    expect(lackingOf(answeringPayloads(editing), route, key)).toEqual({ what: "scope", scope: "control:read" })
    expect(lackingOf(answeringPayloads(editing), route, holding("control:edit", "control:read"))).toBe(null)
    expect(lackingOf(answeringPayloads(reading), route, holding("control:read"))).toBe(null)
    expect(scopesFor(answeringPayloads(notByProjectKeys(reading)))).toEqual([])
  })

  it("for what only people and team keys may do is a session, whatever its scopes", () => {
    const closed = [administering, ofOneself, bySessions(reading), bySessions(administering), notByProjectKeys(reading)]
    for (const permission of closed) {
      expect(lackingOf(permission, route, holding(...scopes))).toEqual({ what: "session" })
    }
  })

  it("as a team's own: nothing, until somebody narrows it", () => {
    const whole = { isTeamKey: true, scopes, grants: null }
    for (const permission of [reading, editing, executing, tunneling, administering, notByProjectKeys(reading)]) {
      expect(lackingOf(permission, route, whole)).toBe(null)
    }
    expect(lackingOf(bySessions(administering), route, whole)).toEqual({ what: "session" })
    // What is left of it must not be enough to replace the secrets.
    const narrowed = { ...whole, scopes: ["control:read", "control:execute"] as const }
    expect(lackingOf(administering, route, narrowed)).toEqual({ what: "scope", scope: "control:edit" })
    expect(lackingOf({ ...ofOneself, teamKey: true }, route, { ...whole, scopes: [] })).toBe(null)
  })
})
