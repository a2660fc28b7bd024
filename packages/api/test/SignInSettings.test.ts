import { expect, it } from "vitest"
import { isSiteAdmin, type SignIn, takesDemo } from "../src/SignInSettings.ts"

const settings: SignIn = {
  demo: false,
  demoHosts: new Set(),
  demoThroughProxies: false,
  siteAdmins: new Set(["kate@example.com"]),
  foundsTeams: false,
  issuer: null,
  clientSecret: null
}

it("Site admin is recognized by the verified email address, in any case and without look-alike letters", () => {
  const is = (email: string | null, emailVerified = true) => isSiteAdmin(settings, { email, emailVerified })
  expect([is("kate@example.com"), is("KATE@Example.com")]).toEqual([true, true])
  expect([is("\u212Aate@example.com"), is(null), is("kate@example.com", false)]).toEqual([false, false, false])
})

it("Demo user is for those who reach the gateway directly under its own name, unless the operator has said more", () => {
  const open: SignIn = { ...settings, demo: true, demoHosts: new Set(["localhost"]) }
  const takes = (headers: Record<string, string>, more: Partial<SignIn> = {}) =>
    takesDemo({ ...open, ...more }, { host: "localhost:8080", ...headers })
  expect([takes({}), takes({ host: "LOCALHOST" })]).toEqual([true, true])
  expect([takes({}, { demo: false }), takes({ host: "rebound.example" }), takes({ host: "" })]).toEqual([
    false,
    false,
    false
  ])
  // Some proxies put their own name in place of the sender's, and say who that was.
  for (const name of ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"]) {
    expect([name, takes({ [name]: "" }), takes({ [name]: "1" }, { demoThroughProxies: true })]).toEqual([
      name,
      false,
      true
    ])
  }
})
