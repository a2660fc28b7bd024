import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { type Principals, ofOneself } from "@tidegate/model/Permission"
import { NewSession, Session } from "@tidegate/model/Session"
import { bodyOf } from "@tidegate/resources/Resource"
import { ApiErrors } from "./ApiError.ts"
import { Authorization } from "./Authorization.ts"
import { newSession, session } from "./Examples.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

const Name = Schema.Trim.check(Schema.isMinLength(1), Schema.isMaxLength(120))

/** What a user may change of themselves. */
export const profile = bodyOf(
  Schema.Struct({ name: Name.annotate({ description: "1 to 120 characters" }) }).annotate({
    identifier: "ProfileWrite"
  })
)

const change = { query: Parameters.onlyTeam, payload: profile.described, success: Session }

const changing = {
  permission: ofOneself,
  summary: "Change one's name",
  description: "Not of the demo user, whom everybody may be.",
  body: { name: "Ada" },
  answer: session
} as const

/** Keys may ask whose they are. */
const oneself: Principals = { ...ofOneself, teamKey: true }

/** Who calls: sessions of people. */
export class AuthApi extends HttpApiGroup.make("auth")
  .add(
    HttpApiEndpoint.get("me", "/auth/me", { query: Parameters.onlyTeam, success: Session }).annotateMerge(
      operation({
        id: "getMe",
        permission: oneself,
        summary: "Tell who is calling",
        description: "The user, their session and the teams that they are members of; of an API key, its team.",
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
        description: "Its token is no longer valid anywhere.",
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
        description: "As the demo user, who owns the demo team; for 24 hours. It can be switched off.",
        answer: newSession,
        errors: ["LOGIN_DISABLED", "RATE_LIMITED", "INTERNAL_ERROR", "QUEUE_UNAVAILABLE"]
      })
    )
  )
  .annotateMerge(OpenApi.annotations({ title: "Sessions", description: "Signing in and out, and who is calling." })) {}
