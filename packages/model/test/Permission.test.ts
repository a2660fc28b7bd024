import { describe, expect, it } from "vitest"
import {
  administering,
  answeringPayloads,
  askingWhoCalls,
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

describe("Missing rights of a key", () => {
  it.each<[string, Principals, Scope]>([
    ["reading", reading, "control:read"],
    ["editing", editing, "control:edit"],
    ["executing", executing, "control:execute"],
    ["tunnels", tunneling, "tunnel:connect"]
  ])("A key for %s needs exactly its own scope", (_, permission, scope) => {
    expect(lackingOf(permission, route, holding(scope))).toBe(null)
    const others = scopes.filter((one) => one !== scope)
    expect(lackingOf(permission, route, holding(...others))).toEqual({ what: "scope", scope })
  })

  it("A key needs the grant of exactly this route to execute, besides the scope", () => {
    const key = { ...holding("control:execute"), grants: ["POST:/v1/requests/:id/retry"] }
    expect(lackingOf(executing, route, key)).toEqual({ what: "grant" })
    expect(lackingOf(executing, route, { ...key, grants: [] })).toEqual({ what: "grant" })
    expect(lackingOf(executing, route, { ...key, grants: [route] })).toBe(null)
    expect(lackingOf(executing, route, { ...key, scopes: [] })).toEqual({ what: "scope", scope: "control:execute" })
    // A grant is nothing to what is not executed.
    expect(lackingOf(reading, route, { ...key, scopes: ["control:read"], grants: [] })).toBe(null)
  })

  it("A key needs the right to read where a change answers with stored payloads", () => {
    const key = holding("control:edit")
    expect(scopesFor(answeringPayloads(editing))).toEqual(["control:edit", "control:read"])
    expect(lackingOf(answeringPayloads(editing), route, key)).toEqual({ what: "scope", scope: "control:read" })
    expect(lackingOf(answeringPayloads(editing), route, holding("control:edit", "control:read"))).toBe(null)
    expect(lackingOf(answeringPayloads(reading), route, holding("control:read"))).toBe(null)
    expect(scopesFor(answeringPayloads(notByProjectKeys(reading)))).toEqual([])
  })

  it("A session is required for what only people and team keys may do, whatever the key's scopes are", () => {
    const closed = [administering, ofOneself, bySessions(reading), bySessions(administering), notByProjectKeys(reading)]
    for (const permission of closed) {
      expect(lackingOf(permission, route, holding(...scopes))).toEqual({ what: "session" })
    }
  })

  it("A team's own key lacks nothing until somebody reduces its rights", () => {
    const whole = { isTeamKey: true, scopes, grants: null }
    for (const permission of [reading, editing, executing, tunneling, administering, notByProjectKeys(reading)]) {
      expect(lackingOf(permission, route, whole)).toBe(null)
    }
    expect(lackingOf(bySessions(administering), route, whole)).toEqual({ what: "session" })
    // What is left of it must not be enough to replace the secrets.
    const narrowed = { ...whole, scopes: ["control:read", "control:execute"] as const }
    expect(lackingOf(administering, route, narrowed)).toEqual({ what: "scope", scope: "control:edit" })
    expect(lackingOf(askingWhoCalls, route, { ...whole, scopes: [] })).toBe(null)
  })

  it("Every key may ask who calls, whatever its scopes and grants are", () => {
    for (const scope of scopes) expect(lackingOf(askingWhoCalls, route, { ...holding(scope), grants: [] })).toBe(null)
    expect(scopesFor(askingWhoCalls)).toEqual([])
  })
})
