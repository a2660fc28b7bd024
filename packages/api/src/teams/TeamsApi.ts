import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import {
  administering,
  bySessions,
  notByProjectKeys,
  ofOneself,
  type Principals,
  reading
} from "@tidegate/model/Permission"
import { OwnTeam, Team, TeamMember, TeamRole } from "@tidegate/model/Team"
import { TeamDeletion } from "@tidegate/model/TeamDeletion"
import { Id, printable, trimmedName } from "@tidegate/resources/Members"
import { bodyOf } from "@tidegate/resources/Resource"
import { Authorization } from "../contract/Authorization.ts"
import { ids, ownTeam, team, teamDeletion, teamMember } from "../contract/Examples.ts"
import { Deleted } from "../contract/Group.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const Name = trimmedName(
  120,
  Schema.String.check(Characters.between(1, 120), printable),
  "1 to 120 characters that can be seen"
)

/** A person is named by their address: a caller who only guesses an id learns nothing about the person. */
const Address = Schema.String.check(
  Characters.upTo(254),
  Schema.isPattern(/^[\x21-\x3f\x41-\x7e]+@[\x21-\x3f\x41-\x7e]+$/u, { message: "must be an e-mail address" })
).annotate({ description: "The e-mail address, which the identity provider verifies" })

const Days = Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_650 }))).annotate({
  description: "Days. Null: the operator's maximum"
})

export const teamWrite = bodyOf(
  Schema.Struct({
    name: Name,
    owner: Schema.optionalKey(Address.annotate({ description: "The first owner. By default the caller" }))
  }).annotate({ identifier: "TeamWrite" })
)

export const teamPatch = bodyOf(
  Schema.Struct({
    name: Schema.optionalKey(Name),
    retention: Schema.optionalKey(
      Schema.Struct({ payload_days: Schema.optionalKey(Days), record_days: Schema.optionalKey(Days) }).annotate({
        description: "Applies from the next run of retention on. Deleted data does not come back"
      })
    ),
    on_failure_workflow_id: Schema.optionalKey(
      Schema.NullOr(Id).annotate({
        message: "must be an id or null",
        description:
          "A run of this workflow begins when a run of a workflow fails that names none itself. Null: none begins"
      })
    )
  }).annotate({ identifier: "TeamPatch" })
)

export const memberWrite = bodyOf(
  Schema.Struct({
    email: Address,
    role: Schema.optionalKey(TeamRole.annotate({ description: "Default: member" }))
  }).annotate({
    identifier: "TeamMemberWrite"
  })
)

export const memberPatch = bodyOf(Schema.Struct({ role: TeamRole }).annotate({ identifier: "TeamMemberPatch" }))

export const teamDeletionWrite = bodyOf(
  Schema.Struct({
    team_id: Parameters.Id.annotate({ description: "The team's id, as a confirmation" }),
    team_name: Schema.String.check(Characters.upTo(200)).annotate({ description: "The team's name, as a confirmation" })
  }).annotate({ identifier: "TeamDeletionWrite" })
)

/** Sessions only: owners that a key has added would remain after the key is revoked. */
const managing = bySessions(administering)

/** For the installation. */
const founding: Principals = { user: "admin", teamKey: false, scope: null }

const query = Parameters.onlyTeam
const of = <S extends Schema.Top>(data: S) => Schema.Struct({ data })
const member = { params: Parameters.pathOf("member", teamMember.id), query }

/** Teams, their members, how long their data is kept, and their deletion. */
export class TeamsApi extends HttpApiGroup.make("teams")
  .add(
    HttpApiEndpoint.get("list", "/teams", { query, success: of(Schema.Array(OwnTeam)) }).annotateMerge(
      operation({
        id: "listTeams",
        permission: { ...ofOneself, teamKey: true },
        summary: "List the caller's teams",
        description: "Returns the user's teams by name, or the API key's team. At most 1,000.",
        answer: { data: [ownTeam] }
      })
    ),
    HttpApiEndpoint.post("create", "/teams", {
      query,
      payload: teamWrite.described,
      success: Team.pipe(HttpApiSchema.status(201))
    }).annotateMerge(
      operation({
        id: "createTeam",
        permission: founding,
        summary: "Create a team",
        description: "Creates a team with its first owner. Only site admins, whom the operator names, can do this.",
        body: { name: "Payments" },
        answer: team
      })
    ),
    HttpApiEndpoint.get("retrieve", "/team", { query, success: Team }).annotateMerge(
      operation({
        id: "getTeam",
        permission: reading,
        summary: "Retrieve the team",
        description: "Returns the team that the call acts on.",
        answer: team,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.patch("update", "/team", { query, payload: teamPatch.described, success: Team }).annotateMerge(
      operation({
        id: "updateTeam",
        permission: administering,
        summary: "Change the team's settings",
        description:
          "The settings are its name, for how long its data is kept, and its on-failure workflow. Members that are left out keep their values. A team cannot keep its data longer than the operator's settings allow.",
        body: { retention: { payload_days: 7 } },
        answer: { ...team, retention: { ...team.retention, payload_days: 7 } },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("members", "/team/members", { query, success: of(Schema.Array(TeamMember)) }).annotateMerge(
      operation({
        id: "listTeamMembers",
        permission: notByProjectKeys(reading),
        summary: "List the members of the team",
        description: "Returns owners first. A team has at most 1,000 members.",
        answer: { data: [teamMember] },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("addMember", "/team/members", {
      query,
      payload: memberWrite.described,
      success: TeamMember
    }).annotateMerge(
      operation({
        id: "addTeamMember",
        permission: managing,
        summary: "Add somebody to the team",
        description:
          "An unknown person becomes a member at the first sign-in with that address, which the issuer must have verified. For an existing member, the role is changed.",
        body: { email: "grace@example.com", role: "member" },
        answer: { ...teamMember, email: "grace@example.com", name: null, role: "member", expected: true },
        errors: ["NOT_FOUND", "RESOURCE_IN_USE", "TEAM_LIMIT_REACHED"]
      })
    ),
    HttpApiEndpoint.patch("changeMember", "/team/members/:id", {
      ...member,
      payload: memberPatch.described,
      success: TeamMember
    }).annotateMerge(
      operation({
        id: "updateTeamMember",
        permission: managing,
        summary: "Change the role of a member",
        description: "Applies from the member's next call on. A team must keep an owner.",
        body: { role: "owner" },
        answer: teamMember,
        errors: ["NOT_FOUND", "RESOURCE_IN_USE"]
      })
    ),
    HttpApiEndpoint.delete("removeMember", "/team/members/:id", { ...member, success: Deleted }).annotateMerge(
      operation({
        id: "removeTeamMember",
        permission: managing,
        summary: "Remove a member from the team",
        description: "The member loses access from the next call on. A team must keep an owner.",
        answer: { id: ids.user, deleted: true },
        errors: ["NOT_FOUND", "RESOURCE_IN_USE"]
      })
    ),
    HttpApiEndpoint.post("delete", "/team/deletion", {
      query,
      payload: teamDeletionWrite.described,
      success: TeamDeletion.pipe(HttpApiSchema.status(202))
    }).annotateMerge(
      operation({
        id: "deleteTeam",
        permission: managing,
        summary: "Delete the team with all it has",
        description:
          "Cannot be undone. The body names the team twice, by id and by name. At once its sources refuse, its keys, shares and members have no access any more, and deliveries and runs end. Its rows are then deleted in the background.",
        body: { team_id: teamDeletion.team_id, team_name: team.name },
        answer: teamDeletion,
        errors: ["NOT_FOUND", "RESOURCE_IN_USE"]
      })
    ),
    HttpApiEndpoint.get("deletions", "/team-deletions", {
      query,
      success: of(Schema.Array(TeamDeletion))
    }).annotateMerge(
      operation({
        id: "listTeamDeletions",
        permission: founding,
        summary: "List the deletions of teams",
        description: "Returns the latest first. At most 1,000 are kept.",
        answer: { data: [teamDeletion] }
      })
    ),
    HttpApiEndpoint.get("deletion", "/team-deletions/:id", {
      params: Parameters.pathOf("team", teamDeletion.team_id),
      query,
      success: TeamDeletion
    }).annotateMerge(
      operation({
        id: "getTeamDeletion",
        permission: ofOneself,
        summary: "Retrieve the deletion of a team",
        description:
          "Returns the progress, and in the end what was deleted. For the user who requested it, and for site admins.",
        answer: teamDeletion,
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Teams",
      description: "Teams, their members, how long their data is kept, and their deletion."
    })
  ) {}
