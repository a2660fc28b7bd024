import { Context } from "effect"
import { foldAddress } from "@tidegate/model/EmailAddress"
import type { Issuer } from "./IdTokens.ts"

/** How people get in. */
export interface SignIn {
  /** Whether anybody may be the demo user, who owns the demo team. */
  readonly demo: boolean
  /** The host names under which that is let: a page of another site that has its name point here must not sign in. */
  readonly demoHosts: ReadonlySet<string>
  /** Addresses, folded, of those who may do everything in every team. */
  readonly siteAdmins: ReadonlySet<string>
  /** Whether a user who is a member of no team gets one of their own; if not, they are turned away. */
  readonly foundsTeams: boolean
  /** Whose ID tokens are taken; null: nobody's. */
  readonly issuer: Issuer | null
}

export const SignInSettings = Context.Reference<SignIn>("@tidegate/api/SignInSettings", {
  defaultValue: () => ({
    demo: true,
    demoHosts: new Set(["127.0.0.1", "localhost", "[::1]"]),
    siteAdmins: new Set<string>(),
    foundsTeams: false,
    issuer: null
  })
})

/** Looked at with every call, so that who is taken out of the settings is one no longer. */
export const isSiteAdmin = (
  { siteAdmins }: SignIn,
  { email, emailVerified }: { readonly email: string | null; readonly emailVerified: boolean }
): boolean => emailVerified && email !== null && siteAdmins.has(foldAddress(email))
