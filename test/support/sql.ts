import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Redacted } from "effect"

export type Row = Readonly<Record<string, unknown>>

/** Runs one statement on a new connection, so that an earlier failure of a connection cannot affect it. */
export const query = async (
  url: string,
  statement: string,
  parameters?: ReadonlyArray<unknown>
): Promise<ReadonlyArray<Row>> => {
  const { rows } = await Effect.runPromise(
    PgConnection.make({ url: Redacted.make(url), applicationName: "test", connectTimeout: "2 seconds" }).pipe(
      Effect.flatMap((connection) => connection.query(statement, parameters)),
      Effect.scoped
    )
  )
  return rows
}
