import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { fail, invalid } from "@tidegate/model/GatewayError"
import type { Caller, NewSession, Session, SignedIn } from "@tidegate/model/Session"
import type { Database } from "@tidegate/storage/Database"
import { demoUser, rename, signInDemo, signOut } from "@tidegate/storage/teams/People"
import { Credentials, isRefusal } from "../Credentials.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { admit, newToken } from "./Admission.ts"
import { login, profile } from "./AuthApi.ts"
import { IdTokens } from "../IdTokens.ts"
import { SignInSettings, takesDemo } from "../SignInSettings.ts"
import { read, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

const ends = ({ expiresAt }: SignedIn) => ({ expires_at: expiresAt.toISOString() })

const shown = (caller: Caller, active_team_id: string): Session =>
  caller.kind === "key"
    ? {
        user: null,
        active_team_id,
        session: null,
        // A project key belongs to its team, but is nobody in it: it has its scopes.
        memberships: caller.key.isTeamKey ? [{ team_id: caller.key.team, role: "owner" }] : [],
        key: { scopes: caller.key.scopes, execute_grants: caller.key.grants }
      }
    : {
        user: caller.signedIn.user,
        active_team_id,
        session: ends(caller.signedIn),
        memberships: caller.signedIn.memberships
      }

const begun = (token: string, signedIn: SignedIn): NewSession => ({
  token,
  user: signedIn.user,
  active_team_id: signedIn.team,
  session: ends(signedIn),
  memberships: signedIn.memberships
})

/** Calls that need a signed-in user were refused to keys before this. */
const signedInOf = (caller: Caller) =>
  caller.kind === "session"
    ? Effect.succeed(caller.signedIn)
    : Effect.fail(fail("USER_SESSION_REQUIRED", "this needs a signed-in user, not an API key"))

export const layer = HttpApiBuilder.group(
  Api,
  "auth",
  Effect.fnUntraced(function* (handlers) {
    const database = yield* Effect.context<Database>()
    const { stranger } = yield* Credentials
    const settings = yield* SignInSettings
    const { verify } = yield* IdTokens

    const change = Effect.fnUntraced(function* ({ request }: WithBody) {
      const { caller, id } = yield* CurrentTeam
      const signedIn = yield* signedInOf(caller)
      if (signedIn.user.id === demoUser) {
        return yield* fail("USER_SESSION_REQUIRED", "the name of the demo user cannot be changed")
      }
      const { name } = yield* Effect.fromResult(profile.judge(yield* readJsonObject(request)))
      yield* read(Effect.provideContext(rename(signedIn.user.id, name), database))
      return { ...shown(caller, id), user: { ...signedIn.user, name } }
    })

    /**
     * Only failures are counted. A valid ID token is accepted, however many others have failed from the same address: nobody can
     * guess a signature.
     */
    const logIn = (call: WithBody) =>
      Effect.tapError(admitted(call), (error) => (isRefusal(error) ? stranger : Effect.void))

    const admitted = Effect.fnUntraced(function* ({ request }: WithBody) {
      if (verify === null) return yield* fail("LOGIN_DISABLED", "no identity provider is configured here")
      const given = yield* Effect.fromResult(login.judge(yield* readJsonObject(request)))
      const idToken = given.id_token ?? given.credential
      if (idToken === undefined) return yield* invalid([{ path: "id_token", message: "is required" }])
      const who = yield* verify(idToken, given.nonce ?? null)
      const { signedIn, token } = yield* Effect.provideContext(admit(settings, who, given.team_id ?? null), database)
      return begun(token, signedIn)
    })

    return handlers
      .handle("me", () => Effect.map(CurrentTeam, ({ caller, id }) => shown(caller, id)))
      .handleRaw("change", change)
      .handleRaw("changeByPut", change)
      .handle("logout", () =>
        Effect.gen(function* () {
          const signedIn = yield* signedInOf((yield* CurrentTeam).caller)
          yield* read(Effect.provideContext(signOut(signedIn), database))
          return { ok: true as const }
        })
      )
      .handle("demo", () =>
        Effect.gen(function* () {
          const { headers } = yield* HttpServerRequest.HttpServerRequest
          // Each call is counted: it has no credential, and creates a session.
          yield* stranger
          if (!takesDemo(settings, headers)) {
            return yield* fail("LOGIN_DISABLED", "the demo login is switched off here")
          }
          const token = newToken()
          return begun(token, yield* read(Effect.provideContext(signInDemo(token), database)))
        })
      )
      .handleRaw("login", logIn)
  })
)
