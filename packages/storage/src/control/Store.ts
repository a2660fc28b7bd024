import type { Effect, Result, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { AnyResource, ChangeOf, FieldsOf, RecordOf, Switch, SwitchOf } from "@tidegate/resources/Resource"
import type { PendingOf } from "../delivery/CancelPending.ts"
import type { ResourcePage, ResourceQuery } from "../reads/ResourceLists.ts"
import type { Owner } from "../secrets/SealedColumn.ts"

/** The common columns of every resource. */
export interface StoredRow extends Owner {
  readonly name: string
  /** The ids of the commands that wrote it last, the latest first. */
  readonly recent_commands: ReadonlyArray<string>
  readonly deleted_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
}

/** Values by column. A fragment is an SQL expression over the row. */
export interface Values {
  readonly [column: string]: unknown
}

/** Whom a committed change concerns beside the resource itself. */
export interface Concerned {
  /** Destinations whose deliveries use it. */
  readonly destinations: ReadonlyArray<string>
  /** Resources whose pending events have just become CANCELLED. */
  readonly cancelled: ReadonlyArray<PendingOf>
  /** The source whose channel has something to do now. Absent: none. */
  readonly channel?: string
  /** The source whose subscription has changed. Absent: none. */
  readonly subscription?: string
}

/** How records are shown. */
export interface Shown {
  /** With counts, which need a read of their own. */
  readonly counts: boolean
  /** In the form for lists, which may have less. */
  readonly listed?: boolean
}

export const nobody: Concerned = { destinations: [], cancelled: [] }

/** The circumstances of a change. */
export interface Command {
  /**
   * The caller makes it once. When a command that wrote the row recently is repeated, it changes nothing and returns what is
   * stored.
   */
  readonly id?: string | undefined
  /** The user who asks. */
  readonly by?: string | null | undefined
  /** Work that has to follow the commit. It runs before the answer is read, and so even if that read fails. */
  readonly afterCommit?: (concerned: Concerned) => Effect.Effect<void, GatewayError>
}

/** Why a change fails inside its transaction. */
export type Failure = GatewayError | SqlError.SqlError

/**
 * The rows of one resource, for one team at a time. Every change is one transaction; its answer is read after the commit. A
 * switch that is already in the requested position writes nothing.
 */
export interface Store<R extends AnyResource> {
  readonly get: (team_id: string, id: string) => Effect.Effect<RecordOf<R>, GatewayError>
  /** The id of the resource with that name (and these values), or null. */
  readonly findByName: (team_id: string, name: string, of?: Values) => Effect.Effect<string | null, GatewayError>
  /** Converts rows to records, in the same order. */
  readonly records: (
    rows: ReadonlyArray<StoredRow>,
    options: Shown
  ) => Effect.Effect<ReadonlyArray<RecordOf<R>>, SqlError.SqlError>
  readonly list: (team_id: string, query: ResourceQuery) => Effect.Effect<ResourcePage<RecordOf<R>>, GatewayError>
  /** A repeated create with the same id changes nothing and returns what is stored. */
  readonly create: (
    team_id: string,
    id: string,
    fields: FieldsOf<R>,
    command?: Command
  ) => Effect.Effect<RecordOf<R>, GatewayError>
  /** `change` gets what is stored, and may be called more than once. */
  readonly update: (
    team_id: string,
    id: string,
    change: (stored: FieldsOf<R>) => Result.Result<ChangeOf<R>, GatewayError>,
    command?: Command
  ) => Effect.Effect<RecordOf<R>, GatewayError>
  readonly switch: (
    team_id: string,
    id: string,
    to: SwitchOf<R>,
    command?: Command
  ) => Effect.Effect<RecordOf<R>, GatewayError>
  /** Returns members to add to the answer besides the id, if there are any. */
  readonly delete: (
    team_id: string,
    id: string,
    command?: Command
  ) => Effect.Effect<Schema.JsonObject | undefined, GatewayError>
}

/** The rows that a create depends on, as parts of its insert statement. */
export interface HeldRows {
  /** Locks them. */
  readonly rows: Statement.Fragment
  /** Whether all of them exist. */
  readonly areThere: Statement.Fragment
  /** What changes with them when the row is `made`. */
  readonly concerned: Statement.Fragment
}

/** The changes of a command: written values of columns, or a switch. */
export type Asked = Switch | Values

/**
 * What is special about a resource. Everything but `show` and `narrow` runs in the transaction of a change, in this order: `hold`, `prepare`,
 * `follow`. Code that only one resource needs is in its store, and not a hook.
 */
export interface Special<Row extends StoredRow, R extends AnyResource> {
  /** Converts rows to records, in the same order. */
  readonly show: (
    rows: ReadonlyArray<Row>,
    options: Shown
  ) => Effect.Effect<ReadonlyArray<RecordOf<R>>, SqlError.SqlError>
  /** Completes stored fields, when a row may be older than some of them. */
  readonly fields?: (fields: FieldsOf<R>) => FieldsOf<R>
  /**
   * Locks the rows that come before its own row, in the order team, filters, destinations, sources, connections, transformations. The row itself
   * names them, so it is first read without a lock. If it has changed by the time that it is locked, everything begins again.
   */
  readonly hold?: (team_id: string, before: Row | null, next: Values) => Effect.Effect<void, Failure>
  /**
   * Whether a create may be one statement without a transaction around it, and which rows that statement locks: null: it may not;
   * by default it may when there is no `hold`. In one statement `prepare` and `follow` must not use the database. When a row is
   * missing, nothing is inserted, and the following transaction finds out which it is.
   */
  readonly alone?: (team_id: string, next: Values) => HeldRows | typeof noRows | null
  /** The final values to write; null: nothing has changed. Fails when something else prevents the change. */
  readonly prepare?: (owner: Owner, before: Row | null, next: Values) => Effect.Effect<Values | null, Failure>
  /**
   * The values that a write or a switch means, if not the written ones or the switch's own column; null: the row has them
   * already.
   */
  readonly transition?: (row: Row, asked: Asked, at: Date) => Result.Result<Values | null, GatewayError>
  /** The additional values of a delete. Fails when something prevents it. */
  readonly remove?: (row: Row, at: Date) => Effect.Effect<Values, Failure>
  /**
   * Makes the changes that belong to the same commit, and returns whom all of it concerns. `by`: the user who asked for it, if
   * any.
   */
  readonly follow?: (before: Row | null, after: Row, at: Date, by: string | null) => Effect.Effect<Concerned, Failure>
  /** The members that a delete returns besides the id. They are read after the commit. */
  readonly deleted?: (row: Row) => Effect.Effect<Schema.JsonObject, SqlError.SqlError>
  /** Whom a change concerns that turns out to be made already. */
  readonly concerns?: (row: Row) => Effect.Effect<Concerned, Failure>
  /** Further conditions of a list. */
  readonly narrow?: (team_id: string, query: ResourceQuery) => ReadonlyArray<Statement.Fragment>
}

/** A create that locks no rows. */
export const noRows = "no rows"
