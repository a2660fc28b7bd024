import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { askingWhoCalls, ofOneself } from "@tidegate/model/Permission"
import { NewSession, Session } from "@tidegate/model/Session"
import { printable, trimmedName } from "@tidegate/resources/Members"
import { bodyOf } from "@tidegate/resources/Resource"
import { ApiErrors } from "../contract/ApiError.ts"
import { Authorization } from "../contract/Authorization.ts"
import { ids, newSession, session } from "../contract/Examples.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const Name = trimmedName(
  120,
  Schema.String.check(Characters.between(1, 120), printable),
  "1 to 120 characters that can be seen"
)

/** What users may change about themselves. */
export const profile = bodyOf(
  Schema.Struct({
    name: Name
  }).annotate({
    identifier: "ProfileWrite"
  })
)

const Token = Schema.String.check(Characters.between(1, 16_384))

/** The body of a sign-in: the ID token under one of its two names. */
export const login = bodyOf(
  Schema.Struct({
    id_token: Schema.optionalKey(
      Token.annotate({ description: "An OpenID Connect ID token of the configured issuer" })
    ),
    credential: Schema.optionalKey(Token.annotate({ description: "Alias of id_token" })),
    team_id: Schema.optionalKey(
      Schema.String.check(Characters.upTo(100)).annotate({
        description: "The team of calls that name no team. It must be one of the user's teams"
      })
    ),
    nonce: Schema.optionalKey(
      Schema.String.check(Characters.between(1, 1_000)).annotate({
        description: "The nonce with which the token was requested. If it is sent, the token must contain it"
      })
    )
  }).annotate({ identifier: "Login" })
)

const loginErrors = ["LOGIN_DISABLED", "RATE_LIMITED", "INTERNAL_ERROR", "QUEUE_UNAVAILABLE"] as const

const change = { query: Parameters.onlyTeam, payload: profile.described, success: Session }

const changing = {
  permission: ofOneself,
  summary: "Change the user's own name",
  description: "The name of the demo user cannot be changed.",
  body: { name: "Ada" },
  answer: session
} as const

/** The caller, and the sessions of people. */
export class AuthApi extends HttpApiGroup.make("auth")
  .add(
    HttpApiEndpoint.get("me", "/auth/me", { query: Parameters.onlyTeam, success: Session }).annotateMerge(
      operation({
        id: "getMe",
        permission: askingWhoCalls,
        summary: "Retrieve the caller",
        description:
          "Returns the user, the session and the user's teams. For a key it returns the key's team, and in `key` its rights there.",
        answer: session
      })
    ),
    HttpApiEndpoint.patch("change", "/auth/me", change).annotateMerge(operation({ id: "updateMe", ...changing })),
    HttpApiEndpoint.put("changeByPut", "/auth/me", change).annotateMerge(
      operation({ id: "updateMeByPut", ...changing })
    ),
    HttpApiEndpoint.post("logout", "/auth/logout", {
      query: Parameters.onlyTeam,
      success: Schema.Struct({ ok: Schema.Literal(true) })
    }).annotateMerge(
      operation({
        id: "logout",
        permission: ofOneself,
        summary: "End the session",
        description: "The session's token is no longer valid.",
        answer: { ok: true }
      })
    )
  )
  .middleware(Authorization)
  .add(
    HttpApiEndpoint.post("demo", "/auth/demo/login", { success: NewSession, error: ApiErrors }).annotateMerge(
      operation({
        id: "loginDemo",
        permission: "public",
        summary: "Begin a demo session",
        description:
          "The session is that of the demo user, who owns the demo team. It lasts 24 hours. The operator can switch this off.",
        answer: newSession,
        errors: loginErrors
      })
    ),
    HttpApiEndpoint.post("login", "/auth/idp/login", {
      payload: login.described,
      success: NewSession,
      error: ApiErrors
    }).annotateMerge(
      operation({
        id: "login",
        permission: "public",
        summary: "Begin a session with an ID token",
        description:
          "The issuer, audience, signature and times of the token are checked, and the nonce if one is sent. The session ends after 7 days.",
        body: { id_token: "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl", team_id: ids.team },
        answer: newSession,
        errors: ["VALIDATION_ERROR", "INVALID_ID_TOKEN", "TEAM_FORBIDDEN", ...loginErrors]
      })
    )
  )
  .annotateMerge(OpenApi.annotations({ title: "Sessions", description: "Signing in and out, and who is calling." })) {}
