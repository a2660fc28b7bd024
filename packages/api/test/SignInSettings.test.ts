import { expect, it } from "vitest"
import { isSiteAdmin, type SignIn } from "../src/SignInSettings.ts"

const settings: SignIn = {
  demo: false,
  demoHosts: new Set(),
  siteAdmins: new Set(["kate@example.com"]),
  foundsTeams: false,
  issuer: null
}

it("a site admin has the address of one, in any case, and no letter that only looks alike", () => {
  const is = (email: string | null, emailVerified = true) => isSiteAdmin(settings, { email, emailVerified })
  expect([is("kate@example.com"), is("KATE@Example.com")]).toEqual([true, true])
  expect([is("\u212Aate@example.com"), is(null), is("kate@example.com", false)]).toEqual([false, false, false])
})
