import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { SignedIn } from "@tidegate/model/Session"
import type { Database } from "@tidegate/storage/Database"
import { type Identity, signIn } from "@tidegate/storage/teams/People"
import { read } from "../handlers/Calls.ts"
import { isSiteAdmin, type SignIn } from "../SignInSettings.ts"

/** The token of a new session. */
export const newToken = (): string => `ses_${randomBytes(32).toString("hex")}`

/**
 * Begins a session of a person whose ID token has been verified, if the person is a member of a team here or the settings let
 * everybody in. `team_id`: the team that the session acts on; null: the person's first one.
 */
export const admit = Effect.fnUntraced(function* (
  settings: SignIn,
  who: Identity,
  team_id: string | null
): Effect.fn.Return<{ readonly token: string; readonly signedIn: SignedIn }, GatewayError, Database> {
  const token = newToken()
  const admission = {
    isSiteAdmin: isSiteAdmin(settings, { email: who.email, emailVerified: who.email_verified }),
    team_id,
    foundsTeam: settings.foundsTeams
  }
  return { token, signedIn: yield* read(signIn(who, token, admission)) }
})
