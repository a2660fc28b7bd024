import { Schema } from "effect"
import type { Role } from "./Permission.ts"
import type { KeyInUse } from "./ProjectKey.ts"
import { Timestamp } from "./Timestamp.ts"

/** Somebody who signs in. */
export const User = Schema.Struct({
  id: Schema.String,
  email: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  picture_url: Schema.NullOr(Schema.String)
}).annotate({ identifier: "User", description: "Somebody who signs in." })
export type User = typeof User.Type

const roles: ReadonlyArray<Role> = ["owner", "member"]

export const Membership = Schema.Struct({ team_id: Schema.String, role: Schema.Literals(roles) }).annotate({
  identifier: "Membership",
  description: "What somebody is to a team."
})
export type Membership = typeof Membership.Type

const Ends = Schema.Struct({ expires_at: Timestamp })

/** What is told of who is calling. */
export const Session = Schema.Struct({
  user: Schema.NullOr(User).annotate({ description: "Null: the caller is an API key" }),
  active_team_id: Schema.String.annotate({ description: "What a call that names no team acts on" }),
  session: Schema.NullOr(Ends).annotate({ description: "Null: the caller is an API key" }),
  memberships: Schema.Array(Membership)
}).annotate({ identifier: "Session", description: "Who is calling." })
export type Session = typeof Session.Type

/** What signing in answers. */
export const NewSession = Schema.Struct({
  token: Schema.String.annotate({ description: "Shown this once; sent as `Authorization: Bearer <token>`" }),
  user: User,
  active_team_id: Schema.String,
  session: Ends,
  memberships: Schema.Array(Membership)
}).annotate({ identifier: "NewSession", description: "A session that has just begun." })
export type NewSession = typeof NewSession.Type

/** Somebody signed in: what a session's token stands for. */
export interface SignedIn {
  readonly tokenHash: string
  readonly user: User
  /** Whether the issuer vouches for the address: only then does it make anybody a site admin. */
  readonly emailVerified: boolean
  /** What a call that names no team acts on. */
  readonly team: string
  readonly expiresAt: Date
  readonly memberships: ReadonlyArray<Membership>
}

/** Who calls. */
export type Caller =
  | { readonly kind: "key"; readonly key: KeyInUse }
  | { readonly kind: "session"; readonly signedIn: SignedIn; readonly isSiteAdmin: boolean }

/** The user who calls; null: a key does. */
export const userOf = (caller: Caller): string | null => (caller.kind === "session" ? caller.signedIn.user.id : null)

/** The team that a caller acts on who names none. */
export const ownTeam = (caller: Caller): string => (caller.kind === "key" ? caller.key.team : caller.signedIn.team)
