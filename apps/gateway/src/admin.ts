import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Logger } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { keysFit } from "@tidegate/storage/Agreement"
import { daysKept } from "@tidegate/storage/teams/KeyAudit"
import { cutOver, shadowDenials } from "@tidegate/storage/teams/KeyCutover"
import { renewPepper } from "@tidegate/storage/teams/KeyPeppers"
import { renewAll, type Renewed, usesOfOldKeys } from "@tidegate/storage/secrets/KeyRotation"
import { createTeam, listMembers, listTeams, putMember, removeMember } from "@tidegate/storage/teams/Members"
import { listDeletions, requestDeletion } from "@tidegate/storage/teams/TeamDeletions"
import { sealSettings } from "@tidegate/storage/secrets/SealedSettings"
import { usesOfPeppers } from "@tidegate/storage/teams/ProjectKeys"
import { Secrets } from "@tidegate/storage/secrets/Secrets"
import { backup, restore } from "./backup/Commands.ts"
import { doctor } from "./doctor/Command.ts"
import { installation } from "./OwnInstallation.ts"
import { settings, SettingsError } from "./Settings.ts"

/*
 * `npm run admin`: operations on an installation that the API does not have. It reads the gateway's settings and works in its database. A
 * running gateway is not required, and not disturbed.
 */

/** The issuer with which members who have not signed in yet will sign in. */
const issuer = Effect.map(settings, ({ signIn }) => signIn.issuer?.issuer ?? null)

const said = (error: GatewayError) => new SettingsError({ message: error.message })

const holdsKeys = Effect.gen(function* () {
  if (yield* keysFit) return
  yield* new SettingsError({
    message:
      "TIDEGATE_SECRET_KEYS: the secrets in this database were encrypted with another key; give it here too, behind the new one"
  })
})

const progress = ({ column, renewed, table }: Renewed) => Console.error(`${table}.${column}: ${renewed} so far`)

/** Whether only the first key of the ring is in use; lists where others are. */
const check = Effect.gen(function* () {
  const { names } = yield* Secrets
  const uses = yield* usesOfOldKeys
  for (const { column, isInRing, key, table, values } of uses) {
    const why = isInRing ? "" : " (not in the ring: they cannot be read)"
    yield* Console.log(`key ${key}: ${values} in ${table}.${column}${why}`)
  }
  const [first, ...others] = names.map(({ id }) => id)
  const used = new Set(uses.filter(({ isInRing }) => isInRing).map(({ key }) => key))
  for (const id of others.filter((id) => !used.has(id))) {
    yield* Console.log(`key ${id}: used nowhere; it can be taken out of the ring`)
  }
  process.exitCode = used.size === 0 ? 0 : 1
  yield* Console.log(
    used.size === 0
      ? `everything is encrypted by the key ${first}`
      : "not everything is encrypted by the first key; see keys rotate"
  )
})

const keys = Command.make("keys").pipe(
  Command.withDescription("The keys that secrets at rest are encrypted with (TIDEGATE_SECRET_KEYS)"),
  Command.withSubcommands([
    Command.make(
      "rotate",
      {
        check: Flag.Boolean("check").pipe(
          Flag.withDefault(false),
          Flag.withDescription("Only say whether older keys are still used")
        )
      },
      Effect.fn(function* (asked) {
        yield* holdsKeys
        if (!asked.check) {
          const sealed = yield* sealSettings
          if (sealed > 0)
            yield* Console.log(`destinations.config: ${sealed} with settings that are secrets now, encrypted`)
          for (const { column, renewed, table, unreadable } of yield* renewAll(progress)) {
            const left = unreadable === 0 ? "" : `, ${unreadable} cannot be read and stay as they are`
            yield* Console.log(`${table}.${column}: ${renewed} encrypted anew${left}`)
          }
        }
        yield* check
      })
    ).pipe(
      Command.withDescription(
        "Encrypts all secrets anew by the first key of the ring, beside gateways at work, then says which keys are used nowhere. " +
          "Exit code 1: an older key still is. Repeated, it goes on where it was"
      )
    )
  ])
)

/** Users choose names, so control characters are replaced before they are printed. */
const row = (...cells: ReadonlyArray<string>) =>
  Console.log(
    cells
      .map((cell) => cell.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "\ufffd"))
      .join("\t")
      .trimEnd()
  )
const projectKeys = Command.make("project-keys").pipe(
  Command.withDescription("The keys of teams (/project-api-keys)"),
  Command.withSubcommands([
    Command.make(
      "pepper",
      { renew: Flag.Boolean("renew").pipe(Flag.withDefault(false), Flag.withDescription("Make a newer one first")) },
      Effect.fn(function* ({ renew }) {
        yield* holdsKeys
        if (renew) yield* Console.log(`keys are made by pepper ${yield* renewPepper} from now on`)
        const uses = yield* usesOfPeppers
        for (const { keys, pepper } of uses) yield* Console.log(`pepper ${pepper}: ${keys} keys`)
        if (uses.length === 0) yield* Console.log("there are no keys yet")
      })
    ).pipe(
      Command.withDescription(
        "How many keys are recognised by each pepper. A newer one is for the keys that are made from then on; the others stay valid by theirs until they are revoked"
      )
    ),
    Command.make(
      "cutover",
      {
        // At least one day: looking back over no time would find no obstacle, and the step cannot be undone.
        days: Flag.Int("days").pipe(
          Flag.filter(
            (days) => days >= 1 && days <= daysKept,
            () => `a whole number from 1 to ${daysKept}, for which decisions are kept`
          ),
          Flag.withDefault(7),
          Flag.withDescription(`How far to look back, at most ${daysKept}`)
        ),
        force: Flag.Boolean("force").pipe(
          Flag.withDefault(false),
          Flag.withDescription("Also for teams whose key would have been refused something")
        )
      },
      Effect.fn(function* ({ days, force }) {
        const denials = yield* shadowDenials(days)
        for (const { count, route_key, team_id } of denials) yield* Console.log(`${team_id}\t${route_key}\t${count}`)
        const waiting = force ? [] : [...new Set(denials.map(({ team_id }) => team_id))]
        const over = yield* cutOver(waiting)
        for (const id of over) yield* Console.log(`${id}: its API key obeys its scopes from now on`)
        if (over.length === 0 && waiting.length === 0)
          yield* Console.log("all API keys of teams obey their scopes already")
        if (waiting.length === 0) return
        process.exitCode = 1
        yield* Console.log(
          `left as they are: ${waiting.join(", ")}; their API keys would have been refused what is listed above`
        )
      })
    ).pipe(
      Command.withDescription(
        "Ends the time in which the API keys of teams that are older than scopes are only watched. There is no way back. Exit code 1: some are left"
      )
    )
  ])
)

const team = Argument.String("team").pipe(Argument.withDescription("The team's id, tm_…"))
const user = Argument.String("user").pipe(Argument.withDescription("An address, or a user's id, usr_…"))

const teams = Command.make("teams").pipe(
  Command.withDescription("The teams of this installation"),
  Command.withSubcommands([
    Command.make("list", {}, () =>
      Effect.flatMap(listTeams, (all) =>
        Effect.forEach(all, ({ id, members, name }) => row(id, String(members), name), { discard: true })
      )
    ).pipe(Command.withDescription("Id, number of members, name")),
    Command.make(
      "create",
      {
        name: Argument.String("name"),
        owner: Flag.String("owner").pipe(Flag.withDescription("Their address, or user's id"))
      },
      Effect.fn(function* ({ name, owner }) {
        yield* Console.log(yield* createTeam(name, { user: owner, issuer: yield* issuer }))
      })
    ).pipe(Command.withDescription("Makes a team with an owner, and says its id")),
    Command.make(
      "delete",
      { team, name: Flag.String("name").pipe(Flag.withDescription("The team's name, as a confirmation")) },
      Effect.fn(function* ({ name, team }) {
        yield* requestDeletion(team, name, null)
        yield* Console.log(`${team} is refused everywhere from now on; gateways that run delete what it has`)
      })
    ).pipe(Command.withDescription("Deletes a team with all it has. This cannot be undone")),
    Command.make("deletions", {}, () =>
      Effect.flatMap(listDeletions, (all) =>
        Effect.forEach(
          all,
          ({ deleted, deleted_total, finished_at, requested_at, stage, team_id }) =>
            row(
              team_id,
              stage,
              requested_at,
              finished_at ?? "",
              String(deleted_total),
              Object.entries(deleted)
                .map(([table, count]) => `${table}=${count}`)
                .join(" ")
            ),
          { discard: true }
        )
      )
    ).pipe(
      Command.withDescription(
        "Deleted teams: id, stage, when it was requested and done, deleted rows, and these by table"
      )
    )
  ])
)

const members = Command.make("members").pipe(
  Command.withDescription("Who belongs to a team. A change holds from the next call on"),
  Command.withSubcommands([
    Command.make("list", { team }, ({ team }) =>
      Effect.flatMap(listMembers(team), (all) =>
        Effect.forEach(
          all,
          ({ email, id, isExpected, name, role }) =>
            row(id, role, email ?? "", name ?? "", isExpected ? "has not signed in yet" : ""),
          { discard: true }
        )
      )
    ).pipe(Command.withDescription("Id, role, address, name")),
    Command.make(
      "put",
      {
        team,
        user,
        role: Flag.Literals("role", ["member", "owner"]).pipe(Flag.withDefault("member" as const))
      },
      Effect.fn(function* ({ role, team, user }) {
        yield* putMember(team, { user, issuer: yield* issuer }, role)
        yield* Console.log(`${user} is ${role === "owner" ? "an owner" : "a member"} of ${team}`)
      })
    ).pipe(
      Command.withDescription(
        "Makes somebody a member, or an owner. Whoever is not known yet is let in when they sign in with that address, verified by the issuer"
      )
    ),
    Command.make("remove", { team, user }, ({ team, user }) =>
      Effect.andThen(removeMember(team, user), Console.log(`${user} is no member of ${team}`))
    ).pipe(Command.withDescription("Ends somebody's membership. A team keeps an owner"))
  ])
)

const admin = Command.make("admin").pipe(
  Command.withDescription("Administers a Tidegate installation, on the machine that has its settings"),
  Command.withSubcommands([
    doctor,
    backup,
    restore,
    // Each opens the installation, which fails if the database cannot be used. The doctor says why.
    Command.provide(keys, installation),
    Command.provide(projectKeys, installation),
    Command.provide(teams, installation),
    Command.provide(members, installation)
  ])
)

NodeRuntime.runMain(
  Command.run(admin, { version: "0.1.0" }).pipe(
    Effect.catchTag("GatewayError", (error) => Effect.fail(said(error))),
    Effect.catchTag("SqlError", () =>
      Effect.fail(
        new SettingsError({
          message: "the database cannot be worked in: is it there, and has a gateway of this version made it?"
        })
      )
    ),
    Effect.catchTag(["SettingsError", "SecretKeyError", "EmbeddedPostgresError"], (error) =>
      Effect.sync(() => {
        process.stderr.write(`admin: ${error.message}\n`)
        process.exitCode = 1
      })
    ),
    Effect.provide([NodeServices.layer, Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])])
  )
)
