import { Context, type Redacted } from "effect"
import { foldAddress } from "@tidegate/model/EmailAddress"
import type { Issuer } from "./IdTokens.ts"

/** The settings for signing in. */
export interface SignIn {
  /** Whether anyone may sign in as the demo user, who owns the demo team. */
  readonly demo: boolean
  /**
   * The host names under which demo sign-in is allowed: a page of another site that points its own name here must not sign in.
   */
  readonly demoHosts: ReadonlySet<string>
  /** Whether that holds for requests through a proxy as well, which others may have sent. */
  readonly demoThroughProxies: boolean
  /** Addresses, folded, of site admins. */
  readonly siteAdmins: ReadonlySet<string>
  /** Whether a user without a team gets one of their own; if not, they are refused. */
  readonly foundsTeams: boolean
  /** The accepted issuer of ID tokens; null: none. */
  readonly issuer: Issuer | null
  /** The secret with which the dashboard gets ID tokens from the issuer; null: it does not offer that. */
  readonly clientSecret: Redacted.Redacted | null
}

export const SignInSettings = Context.Reference<SignIn>("@tidegate/api/SignInSettings", {
  defaultValue: () => ({
    demo: true,
    demoHosts: new Set(["127.0.0.1", "localhost", "[::1]"]),
    demoThroughProxies: false,
    siteAdmins: new Set<string>(),
    foundsTeams: false,
    issuer: null,
    clientSecret: null
  })
})

/** What proxies add to requests, though not all do. */
const ofProxies = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"]

type RequestHeaders = Readonly<Record<string, string | undefined>>

/** Whether the sender of a request with these headers may sign in as the demo user. */
export const takesDemo = ({ demo, demoHosts, demoThroughProxies }: SignIn, headers: RequestHeaders): boolean =>
  demo &&
  demoHosts.has((headers["host"] ?? "").toLowerCase().replace(/:\d*$/, "")) &&
  (demoThroughProxies || ofProxies.every((name) => headers[name] === undefined))

/** Checked with every call, so that a removed address loses the rights at once. */
export const isSiteAdmin = (
  { siteAdmins }: SignIn,
  { email, emailVerified }: { readonly email: string | null; readonly emailVerified: boolean }
): boolean => emailVerified && email !== null && siteAdmins.has(foldAddress(email))
