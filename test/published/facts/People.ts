import { of, row, type Section, tests } from "./Facts.ts"

const sessionTests = tests("packages/api/test/Sessions.test.ts")
const signIn = tests("test/contract/SignIn.test.ts")
const secrets = tests("packages/api/test/ProjectSecrets.test.ts")
const isolation = tests("packages/api/test/Isolation.test.ts")
const errorTests = tests("packages/api/test/Errors.test.ts")

const rotated = secrets(
  "rotated: the values are shown once, the old key is dead, the old signing secret signs on for a day"
)
const newUser = signIn("a new user has a team of their own, and comes back to it")

export const sessions: Section = {
  title: "Sessions and teams",
  endpoints: [
    row("POST /auth/idp/login", newUser),
    row("POST /auth/demo/login", sessionTests("the demo login signs in the demo user, for a day, and keeps no token")),
    row("GET,PUT,PATCH /auth/me", sessionTests("a user changes their own name, a key has none")),
    row("POST /auth/logout", sessionTests("a session ends by signing out, and by its time"))
  ],
  fields: {
    Login: [
      of("id_token credential team_id", newUser),
      of("nonce", tests("packages/api/test/IdTokens.test.ts")("is refused when anything of it is wrong"))
    ],
    NewSession: [of("token user active_team_id session session.* memberships", newUser)],
    Session: [of("user session session.*", sessionTests("a user changes their own name, a key has none"))],
    User: [of("email name picture_url", newUser)],
    Membership: [],
    ProfileWrite: [of("name", sessionTests("a user changes their own name, a key has none"))]
  },
  states: [
    row(
      "team: the header, then team_id, then the demo team",
      sessionTests("acts on the team that is named, else on the session's, as what the user is there")
    ),
    row("an expired session: 401", sessionTests("a session ends by signing out, and by its time")),
    row(
      "no credential, or a wrong one: 401",
      isolation("without a credential, or with one that is none, is answered 401 unless it is public")
    ),
    row(
      "a principal that cannot act on the team: 403",
      isolation("is shut to a ${who} that names another team, or one that there is not")
    ),
    row(
      "a user session is needed to change a profile: 403",
      sessionTests("a user changes their own name, a key has none")
    )
  ],
  limits: [row("profile text: 120 characters at most", sessionTests("a user changes their own name, a key has none"))]
}

export const projectSecrets: Section = {
  title: "Project secrets",
  endpoints: [
    row("GET /project-secrets", secrets("are made when they are first asked for, and never shown")),
    row("PUT /project-secrets", secrets("provided: what is given replaces, what is left out stays")),
    row("POST /project-secrets/rotate", rotated)
  ],
  fields: {
    ProjectSecrets: [],
    ProjectSecret: [
      of(
        "masked_value has_secret last_rotated_at",
        tests("test/contract/Records.test.ts")("of project secrets tell when one was rotated")
      )
    ],
    RotatedSecrets: [],
    RotatedSecret: [of("value", rotated)],
    ProjectSecretsWrite: [
      of("api_key signing_secret", secrets("provided: what is given replaces, what is left out stays"))
    ],
    ProjectSecretsRotate: [of("rotate", rotated)]
  },
  states: [
    row(
      "a missing pair is created on the first read",
      secrets("are made when they are first asked for, and never shown")
    ),
    row(
      "a replaced signing secret signs on beside the new one",
      tests("test/contract/RotatedSecrets.test.ts")(
        "deliveries are signed by the new and by the former secret, from the answer on"
      )
    )
  ],
  limits: [
    row(
      "a secret of the caller's own: 12 characters at least",
      secrets("provided: what is given replaces, what is left out stays")
    )
  ]
}

export const conventions: Section = {
  title: "Conventions and errors",
  endpoints: [],
  fields: {},
  states: [
    row(
      "every route with and without /v1",
      tests("packages/api/test/Commands.test.ts")("the contract is served, with and without /v1, and a page to try it")
    ),
    row(
      "400, 401, 403, 404, 409 with error, code, message, data",
      errorTests('${name}${prefix === "" ? "" : ", below /v1"}')
    ),
    row(
      "409 RESOURCE_ALREADY_EXISTS tells whose the name is",
      errorTests("a create with a name that is taken tells whose it is")
    ),
    row("405 names the methods that there are", errorTests("a wrong method is told the right ones")),
    row(
      "ids have the prefixes of their kinds",
      tests("test/contract/Resources.test.ts")("no two share a name, a path or the prefix of their ids")
    ),
    row(
      "nothing of one team is shown to, named by or changed by another",
      tests("packages/storage/test/reads/Isolation.test.ts")("show nothing of another team: ${name}")
    ),
    row(
      "a route that is not built yet says so",
      tests("packages/api/test/NotBuilt.test.ts")("${method} ${path} says so")
    ),
    row("no mutated body makes a 5xx", tests("test/contract/openapi/Mutated.test.ts")("was all of it"))
  ]
}
