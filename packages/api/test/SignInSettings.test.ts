import { expect, it } from "vitest"
import { isSiteAdmin, type SignIn } from "../src/SignInSettings.ts"

const settings: SignIn = {
  demo: false,
  demoHosts: new Set(),
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
