import { of, row, type Section, tests } from "./Facts.ts"

const sessionTests = tests("packages/api/test/Sessions.test.ts")
const signIn = tests("test/contract/SignIn.test.ts")
const secrets = tests("packages/api/test/ProjectSecrets.test.ts")
const isolation = tests("packages/api/test/Isolation.test.ts")
const errorTests = tests("packages/api/test/Errors.test.ts")

const rotated = secrets("Rotation shows new secrets once, ends the old key and keeps the old signing secret for a day")
const rightsOfKey = tests("packages/api/test/ProjectKeys.test.ts")(
  "Project key can call what its scopes allow and is told which scope is missing"
)
const newUser = signIn("A new user gets a team and returns to it at the next sign-in")

export const sessions: Section = {
  title: "Sessions and teams",
  endpoints: [
    row("POST /auth/idp/login", newUser),
    row(
      "POST /auth/demo/login",
      sessionTests("Demo login signs in the demo user for a day and does not store the token in plain text")
    ),
    row("GET,PUT,PATCH /auth/me", sessionTests("User can change the own name, and an API key has no name")),
    row("POST /auth/logout", sessionTests("Session ends when the user signs out and when its time is over"))
  ],
  fields: {
    Login: [
      of("id_token credential team_id", newUser),
      of("nonce", tests("packages/api/test/IdTokens.test.ts")("ID token is refused when any part of it is wrong"))
    ],
    NewSession: [of("token user active_team_id session session.* memberships", newUser)],
    Session: [
      of("user session session.*", sessionTests("User can change the own name, and an API key has no name")),
      of("key", rightsOfKey)
    ],
    User: [of("email name picture_url", newUser)],
    KeyRights: [of("scopes execute_grants", rightsOfKey)],
    Membership: [],
    ProfileWrite: [of("name", sessionTests("User can change the own name, and an API key has no name"))]
  },
  states: [
    row(
      "team: the header, then team_id, then the demo team",
      sessionTests("Session acts on the named team, else on its active team, with the user's role there")
    ),
    row("an expired session: 401", sessionTests("Session ends when the user signs out and when its time is over")),
    row(
      "no credential, or a wrong one: 401",
      isolation("Every route without a valid credential is answered 401 unless it is public")
    ),
    row(
      "a principal that cannot act on the team: 403",
      isolation("Every route is closed to a ${who} that names another team or an unknown team")
    ),
    row(
      "a user session is needed to change a profile: 403",
      sessionTests("User can change the own name, and an API key has no name")
    )
  ],
  limits: [
    row(
      "profile text: 120 characters at most",
      sessionTests("User can change the own name, and an API key has no name")
    )
  ]
}

const teamTests = tests("packages/api/test/Teams.test.ts")
const storedMembers = tests("packages/storage/test/Members.test.ts")
const toldAndChanged = teamTests("Team shows its name and retention and can change them within the operator's limits")
const onFailure = tests("packages/api/test/OnFailureWorkflow.test.ts")(
  "A team names a workflow of its own for runs whose workflow has no setting, or does not refuse it"
)
const founded = teamTests("Team is listed to its members and created by site admins")
const added = teamTests("Team adds members by email address, who get access when they sign in")
const ownersStay = teamTests("Team always keeps an owner when members are changed or removed")

const deleted = tests("packages/api/test/TeamDeletion.test.ts")(
  "A team is deleted by its owner, who names it twice, and its progress is told to the owner and to site admins"
)

export const teams: Section = {
  title: "Teams and members",
  endpoints: [
    row("GET,POST /teams", founded),
    row("GET,PATCH /team", toldAndChanged),
    row("GET,POST /team/members", added),
    row("PATCH,DELETE /team/members/{id}", ownersStay),
    row("POST /team/deletion; GET /team-deletions; GET /team-deletions/{id}", deleted)
  ],
  fields: {
    Team: [of("name retention", toldAndChanged), of("on_failure_workflow_id", onFailure), of("members", founded)],
    TeamRetention: [of("*", toldAndChanged)],
    OwnTeam: [of("id name role", founded)],
    TeamMember: [of("id email name role expected", added)],
    TeamWrite: [of("name owner", founded)],
    TeamPatch: [of("name retention retention.*", toldAndChanged), of("on_failure_workflow_id", onFailure)],
    TeamMemberWrite: [of("email role", added)],
    TeamMemberPatch: [of("role", ownersStay)],
    TeamDeletion: [of("*", deleted)],
    TeamDeletionWrite: [of("*", deleted)]
  },
  states: [
    row("the last owner: 409 RESOURCE_IN_USE", ownersStay),
    row(
      "members are managed by owners, by no key, and not by the demo user",
      teamTests("Team is managed by its owners and by no key, and the demo user cannot add members")
    ),
    row(
      "a deleted team stops at once, and is gone from every table although a process is killed",
      tests("test/contract/TeamDeletion.test.ts")(
        "A deleted team stops at once, and is gone from every table although the process is killed"
      )
    ),
    row("nobody of another team is found", teamTests("Team calls find no member of another team by any id"))
  ],
  limits: [
    row("retention: at most what the operator keeps", toldAndChanged),
    row("1,000 members", storedMembers("The number of a team's members is limited, even in concurrent additions"))
  ]
}

export const projectSecrets: Section = {
  title: "Project secrets",
  endpoints: [
    row("GET /project-secrets", secrets("Project secrets are created at the first read and never shown")),
    row("PUT /project-secrets", secrets("Written project secrets replace the old ones, and omitted secrets stay")),
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
      of("api_key signing_secret", secrets("Written project secrets replace the old ones, and omitted secrets stay"))
    ],
    ProjectSecretsRotate: [of("rotate", rotated)]
  },
  states: [
    row(
      "a missing pair is created on the first read",
      secrets("Project secrets are created at the first read and never shown")
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
      secrets("Written project secrets replace the old ones, and omitted secrets stay")
    )
  ]
}

const keys = tests("packages/api/test/ProjectKeys.test.ts")
const storedKeys = tests("packages/storage/test/ProjectKeys.test.ts")
const shown = keys("Project key is shown in full once and later only by its prefix")
const refused = keys("Contradictory key policy is refused with all of its faults")
const changing = keys("Change of a project key applies to the next call and keeps what it does not name")
const revoking = keys("Project key is revoked permanently by either call, and a repeat changes nothing")
const audited = keys("Audit of a project key counts each of a thousand concurrent decisions exactly")
const ownKey = keys("API key of the team is listed as a project key and may do everything until it is restricted")
const atMost = keys("Team has at most the maximum number of project keys, even when they are made concurrently")
const expiring = keys(
  "Key is refused from its end on with the time of it, and is accepted again when its owner moves the end"
)
const limited = keys("Project key is limited to its calls per minute and is told how many are left")

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
      of("expires_at", expiring),
      of("legacy_project_secret", ownKey),
      of("last_used_at", storedKeys("An allowed decision updates the last use of its key at most once a minute"))
    ],
    NewProjectKey: [of("api_key", shown)],
    KeyDecisions: [
      of(
        "id key_id team_id route_key permission decision reason count first_seen_at last_seen_at created_at",
        storedKeys("Decisions are added up over processes, and a repeated write changes nothing")
      )
    ],
    ProjectKeyWrite: [of("name scopes execute_grants rate_limit_per_minute", refused), of("expires_at", expiring)],
    ProjectKeyPatch: [
      of("name status scopes execute_grants rate_limit_per_minute", changing),
      of("expires_at", expiring)
    ]
  },
  states: [
    row("active and disabled: 401 while it is, and back", changing),
    row("expired: 401 with the time of it, and back", expiring),
    row("revoked: permanent, repeated without change, 409 on update", revoking),
    row(
      "every scope, grant and kind of key on every route",
      isolation(
        "Every route obeys its permission for a ${who}, finds nothing by another team's ids and changes nothing there"
      )
    ),
    row(
      "403 INSUFFICIENT_SCOPE, 403 EXECUTE_GRANT_REQUIRED",
      keys("Project key can call what its scopes allow and is told which scope is missing")
    ),
    row("session only, owners only", keys("Project keys are managed by owners of the team and by no key")),
    row("an invalid policy: 400 INVALID_KEY_POLICY", refused),
    row(
      "409 LEGACY_POLICY_CUTOVER_INCOMPLETE",
      keys("API key of the team is audited but not restricted or changeable before the cut-over")
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
    row(
      "audit: 100 coalesced decisions",
      storedKeys("Decisions of many time windows are read from the latest to the oldest")
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
      tests("packages/api/test/Commands.test.ts")("OpenAPI document and its page are served with and without /v1")
    ),
    row(
      "400, 401, 403, 404, 409 with error, code, message, data",
      errorTests('API answers ${code} to ${name}${prefix === "" ? "" : ", below /v1"}')
    ),
    row(
      "409 RESOURCE_ALREADY_EXISTS tells whose the name is",
      errorTests("Create with a name that is taken returns the id of the existing resource")
    ),
    row(
      "Idempotency-Key: the same answer for a day, 409 while under way, 422 with another call",
      tests("packages/api/test/Idempotency.test.ts")(
        "Call with an idempotency key is executed once and gets the same answer again"
      )
    ),
    row(
      "ETag and If-None-Match: 304",
      tests("packages/api/test/Conditional.test.ts")(
        "Read has an entity tag and answers 304 until the resource changes"
      )
    ),
    row(
      "pages of named origins",
      tests("test/contract/CrossOrigin.test.ts")("A page of a configured origin may call the API and read the answer")
    ),
    row(
      "405 names the methods that there are",
      errorTests("Call with a wrong method gets the allowed methods in its answer")
    ),
    row(
      "ids have the prefixes of their kinds",
      tests("test/contract/Resources.test.ts")("Resource names, paths and id prefixes are unique")
    ),
    row(
      "nothing of one team is shown to, named by or changed by another",
      tests("packages/storage/test/reads/Isolation.test.ts")("A read shows nothing of another team: ${name}")
    ),
    row(
      "no mutated body makes a 5xx",
      tests("test/contract/openapi/Mutated.test.ts")("Mutated calls are sent for every operation")
    )
  ]
}
