import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { type Table, type TableName, tables } from "../src/Tables.ts"
import { listDeletions, readDeletion, requestDeletion } from "../src/teams/TeamDeletions.ts"
import { beginPassAgain, beginRemoval, DeletionPace, openDeletions, removePiece } from "../src/teams/TeamRemoval.ts"
import { listTeams, putMember } from "../src/teams/Members.ts"
import { teamExists } from "../src/teams/People.ts"
import { readTeam } from "../src/teams/TeamSettings.ts"
import { demoTeam } from "../src/teams/Teams.ts"
import { mine, other, world } from "./everyTable.ts"
import { codeOf } from "./twoTeams.ts"

/* A team that has rows in every table is deleted. The deletion is broken off before every commit, and nothing is left or counted twice. */

const ofTeams = Object.entries<Table>(tables).flatMap(([name, { team }]) =>
  team === null ? [] : [{ name: name as TableName, column: team }]
)

/** How many rows a team has in each table. */
const rowsOf = Effect.fnUntraced(function* (team: string) {
  const sql = yield* SqlClient.SqlClient
  const counts: Record<string, number> = {}
  for (const { column, name } of ofTeams) {
    const [row] = yield* sql<{ count: number }>`
      select count(*)::int4 as count from ${sql(name)} where ${sql(column)} = ${team}`
    counts[name] = row!.count
  }
  return counts
})

const brokenOff = new SqlError.SqlError({
  reason: new SqlError.UnknownError({ message: "the process has died", cause: undefined })
})

/** Does a piece, but the process dies before its commit. */
const dying = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.flip(sql.withTransaction(Effect.andThen(removePiece(mine), Effect.fail(brokenOff))))
})

const atOnce = Effect.provideService(DeletionPace, { pages: 1, quietMs: 0, channelsMs: 0 })

/** Goes on until the deletion is done. Returns how many pieces it took. */
const toTheEnd = Effect.gen(function* () {
  for (let pieces = 1; ; pieces++) {
    yield* dying
    if ((yield* removePiece(mine)) === null) return pieces
  }
})

layer(world, { excludeTestServices: true })("Deletion of a team", (it) => {
  it.effect("A request is refused for another name, an unknown team and the demo team, and changes nothing", () =>
    Effect.gen(function* () {
      const before = yield* rowsOf(mine)
      expect(yield* codeOf(requestDeletion(mine, "Mine", null))).toBe("VALIDATION_ERROR")
      expect(yield* codeOf(requestDeletion("tm_nobody", "Mine", null))).toBe("NOT_FOUND")
      expect(yield* codeOf(requestDeletion(demoTeam, "Demo", null))).toBe("RESOURCE_IN_USE")
      expect(yield* rowsOf(mine)).toEqual(before)
      expect(yield* openDeletions).toEqual([])
    })
  )

  it.effect(
    "A deleted team is gone at once for everybody, and then from every table, and the rows of another team stay",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const before = yield* rowsOf(mine)
        const others = yield* rowsOf(other)
        expect(Object.values(before).every((count) => count > 0)).toBe(true)
        const versions = yield* sql<{
          version: number
        }>`select version::int4 from sources where team_id = ${mine} order by id`

        const requested = yield* requestDeletion(mine, mine, "usr_ada")
        expect(requested).toMatchObject({
          team_id: mine,
          stage: "stopping",
          requested_by: "usr_ada",
          finished_at: null
        })
        // A repetition changes nothing.
        expect(yield* requestDeletion(mine, mine, "usr_eve")).toEqual(requested)

        const [gone] = yield* sql`select
        (select count(*) from sources where team_id = ${mine} and deleted_at is null)::int4 as sources,
        (select count(*) from destinations where team_id = ${mine} and deleted_at is null)::int4 as destinations,
        (select count(*) from connections where team_id = ${mine} and deleted_at is null)::int4 as connections,
        (select count(*) from workflows where team_id = ${mine} and status <> 'disabled')::int4 as workflows,
        (select count(*) from project_secrets where team_id = ${mine})::int4 as secrets,
        (select count(*) from project_api_keys where team_id = ${mine})::int4 as keys,
        (select count(*) from memberships where team_id = ${mine})::int4 as members,
        (select count(*) from bulk_operations where team_id = ${mine} and finished_at is null)::int4 as operations`
        expect(Object.values(gone!)).toEqual(Array.from({ length: 8 }, () => 0))
        const raised = yield* sql<{
          version: number
        }>`select version::int4 from sources where team_id = ${mine} order by id`
        expect(raised.map(({ version }) => version)).toEqual(versions.map(({ version }) => version + 1))
        expect(yield* teamExists(mine)).toBe(false)
        expect(yield* codeOf(readTeam(mine))).toBe("NOT_FOUND")
        expect(yield* codeOf(putMember(mine, { user: "eve@example.com", issuer: "i" }, "owner"))).toBe("NOT_FOUND")
        expect((yield* listTeams).map(({ id }) => id)).not.toContain(mine)

        // Until everything has stopped, nothing is deleted.
        expect(yield* removePiece(mine)).toBeNull()
        expect((yield* readDeletion(mine)).stage).toBe("stopping")
        yield* beginRemoval(mine)
        yield* dying
        expect(yield* removePiece(mine)).toBe(0)
        // A pass that begins again counts nothing twice.
        yield* beginPassAgain(mine)
        while ((yield* readDeletion(mine)).stage === "removing") {
          yield* dying
          yield* removePiece(mine)
        }
        // Something that was under way writes behind the pass.
        yield* sql`insert into occurrences (team_id, kind, subject_id, code, count, first_at, last_at)
        values (${mine}, 'delivery', 'des', 'TIMEOUT', 1, now(), now())`
        expect(yield* toTheEnd).toBeGreaterThan(Object.keys(before).length)

        expect(Object.values(yield* rowsOf(mine)).every((count) => count === 0)).toBe(true)
        expect(yield* rowsOf(other)).toEqual(others)
        const proof = yield* readDeletion(mine)
        expect(proof).toMatchObject({ stage: "done", current_table: null, finished_at: expect.any(String) })
        // The rows of counts go with the last row that they count, or before it.
        const { team_counts: _, ...deleted } = proof.deleted
        const { team_counts: __, ...had } = before
        expect(deleted).toEqual({ ...had, occurrences: had["occurrences"]! + 1 })
        expect(proof.deleted_total).toBe(Object.values(proof.deleted).reduce((sum, count) => sum + count, 0))
        expect(yield* listDeletions).toEqual([proof])
        expect(yield* codeOf(readDeletion(mine, "usr_eve"))).toBe("NOT_FOUND")
        expect(yield* removePiece(mine)).toBeNull()
      }).pipe(atOnce)
  )
})
