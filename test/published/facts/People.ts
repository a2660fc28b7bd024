import { of, row, type Section, tests } from "./Facts.ts"

const sessionTests = tests("packages/api/test/Sessions.test.ts")
const signIn = tests("test/contract/SignIn.test.ts")
const secrets = tests("packages/api/test/ProjectSecrets.test.ts")
const isolation = tests("packages/api/test/Isolation.test.ts")
const errorTests = tests("packages/api/test/Errors.test.ts")

const rotated = secrets(
  "rotated: the values are shown once, the old key is dead, the old signing secret signs on for a day"
)
const newUser = signIn("A new user gets a team and returns to it at the next sign-in")

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

const teamTests = tests("packages/api/test/Teams.test.ts")
const storedMembers = tests("packages/storage/test/Members.test.ts")
const toldAndChanged = teamTests(
  "is told its name and its days, and changes them within what the operator lets it keep"
)
const founded = teamTests("is listed to who belongs to it, and founded by site admins")
const added = teamTests("takes members by their address, who are let in when they sign in")
const ownersStay = teamTests("keeps an owner, whoever is changed or removed")

export const teams: Section = {
  title: "Teams and members",
  endpoints: [
    row("GET,POST /teams", founded),
    row("GET,PATCH /team", toldAndChanged),
    row("GET,POST /team/members", added),
    row("PATCH,DELETE /team/members/{id}", ownersStay)
  ],
  fields: {
    Team: [of("name retention", toldAndChanged), of("members", founded)],
    TeamRetention: [of("*", toldAndChanged)],
    OwnTeam: [of("id name role", founded)],
    TeamMember: [of("id email name role expected", added)],
    TeamWrite: [of("name owner", founded)],
    TeamPatch: [of("name retention retention.*", toldAndChanged)],
    TeamMemberWrite: [of("email role", added)],
    TeamMemberPatch: [of("role", ownersStay)]
  },
  states: [
    row("the last owner: 409 RESOURCE_IN_USE", ownersStay),
    row(
      "members are managed by owners, by no key, and not by the demo user",
      teamTests("is managed by its owners, and by no key; the demo user, who is everybody, makes nobody a member")
    ),
    row("nobody of another team is found", teamTests("finds nobody of another team, by whatever id"))
  ],
  limits: [
    row("retention: at most what the operator keeps", toldAndChanged),
    row("1,000 members", storedMembers("are so many of a team, however many are added at once"))
  ]
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
        tests("test/contract/Records.test.ts")("Project secrets show when they were last rotated")
      )
    ],
    RotatedSecrets: [],
    RotatedSecret: [of("value", rotated)],
    RotatedSigningSecret: [of("value whsec_value", rotated)],
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
        "Deliveries are signed with the new and the former secret as soon as the rotation returns"
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

const keys = tests("packages/api/test/ProjectKeys.test.ts")
const storedKeys = tests("packages/storage/test/ProjectKeys.test.ts")
const shown = keys("are shown once, and from then on by what they begin with")
const refused = keys("are refused what says nothing together, all faults at once")
const changing = keys("change from the next call on; what is left out stays, and rights are not dropped unasked")
const revoking = keys("are revoked for ever, by either call, as often as it is repeated")
const audited = keys("have every decision about them in their audit, exactly, under a thousand calls at once")
const ownKey = keys("show the API key of the team among them: it may all until it is narrowed")
const atMost = keys("are at most so many in a team, also when they are made at once")
const limited = keys("make as many calls a minute as they may, and are told how many are left")

export const projectKeys: Section = {
  title: "Project keys",
  endpoints: [
    row("GET,POST /project-api-keys", shown),
    row("GET /project-api-keys/{id}", shown),
    row("PUT,PATCH /project-api-keys/{id}", changing),
    row("DELETE /project-api-keys/{id}; POST /project-api-keys/{id}/revoke", revoking),
    row("GET /project-api-keys/{id}/audit", audited)
  ],
  fields: {
    ProjectKey: [
      of(
        "id team_id name masked_key status scopes execute_grants rate_limit_per_minute created_by_user_id created_at updated_at",
        shown
      ),
      of("secret_last_rotated_at", shown),
      of("revoked_at", revoking),
      of("legacy_project_secret", ownKey),
      of("last_used_at", storedKeys("that were let in say when the key was used last, once a minute"))
    ],
    NewProjectKey: [of("api_key", shown)],
    KeyDecisions: [
      of(
        "id key_id team_id route_key permission decision reason count first_seen_at last_seen_at created_at",
        storedKeys("are added up over processes, and written again change nothing")
      )
    ],
    ProjectKeyWrite: [of("name scopes execute_grants rate_limit_per_minute", refused)],
    ProjectKeyPatch: [of("name status scopes execute_grants rate_limit_per_minute", changing)]
  },
  states: [
    row("active and disabled: 401 while it is, and back", changing),
    row("revoked: permanent, repeated without change, 409 on update", revoking),
    row(
      "every scope, grant and kind of key on every route",
      isolation(
        "is open to a ${who} as it is said to be, finds nothing by another team's ids, and changes nothing there"
      )
    ),
    row(
      "403 INSUFFICIENT_SCOPE, 403 EXECUTE_GRANT_REQUIRED",
      keys("may do what their scopes say, and are told what is missing")
    ),
    row("session only, owners only", keys("are managed by the owners of the team, and by no key")),
    row("an invalid policy: 400 INVALID_KEY_POLICY", refused),
    row(
      "409 LEGACY_POLICY_CUTOVER_INCOMPLETE",
      keys("before the cut-over, watch a team's API key, let it through, and are not changed")
    ),
    row(
      "changed, disabled, revoked: felt in every process within a second",
      tests("test/cluster/projectKeys.test.ts")(
        "A revoked project key is refused by each process from the next call on"
      )
    )
  ],
  limits: [
    row("50 keys that are not revoked: 409 PROJECT_KEY_LIMIT_REACHED; a list of 100", atMost),
    row("calls a minute: 1 to 10,000, 240 unless told, 429 with its headers", limited),
    row(
      "the limit of a key over several processes",
      tests("test/cluster/projectKeys.test.ts")("A project key's rate limit holds for both processes together")
    ),
    row("name: 1 to 100 characters; 50 grants", refused),
    row("audit: 100 coalesced decisions", storedKeys("of many windows are read from the latest on"))
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
    row(
      "Idempotency-Key: the same answer for a day, 409 while under way, 422 with another call",
      tests("packages/api/test/Idempotency.test.ts")("is carried out once, and answers the same again")
    ),
    row(
      "ETag and If-None-Match: 304",
      tests("packages/api/test/Conditional.test.ts")(
        "has a tag, and is 304 to who has it, until something of it changes"
      )
    ),
    row(
      "pages of named origins",
      tests("test/contract/CrossOrigin.test.ts")("A page of a configured origin may call the API and read the answer")
    ),
    row("405 names the methods that there are", errorTests("a wrong method is told the right ones")),
    row(
      "ids have the prefixes of their kinds",
      tests("test/contract/Resources.test.ts")("Resource names, paths and id prefixes are unique")
    ),
    row(
      "nothing of one team is shown to, named by or changed by another",
      tests("packages/storage/test/reads/Isolation.test.ts")("show nothing of another team: ${name}")
    ),
    row(
      "a route that is not built yet says so",
      tests("packages/api/test/NotBuilt.test.ts")("${method} ${path} says so")
    ),
    row(
      "no mutated body makes a 5xx",
      tests("test/contract/openapi/Mutated.test.ts")("Mutated calls are sent for every operation")
    )
  ]
}
