import { Schema } from "effect"
import type { Role } from "./Permission.ts"
import { type KeyInUse, KeyScope } from "./ProjectKey.ts"
import { Timestamp } from "./Timestamp.ts"

/** A person who signs in. */
export const User = Schema.Struct({
  id: Schema.String,
  email: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  picture_url: Schema.NullOr(Schema.String)
}).annotate({ identifier: "User", description: "A person who can sign in." })
export type User = typeof User.Type

const roles: ReadonlyArray<Role> = ["owner", "member"]

export const Membership = Schema.Struct({ team_id: Schema.String, role: Schema.Literals(roles) }).annotate({
  identifier: "Membership",
  description: "A user's role in a team."
})
export type Membership = typeof Membership.Type

const Ends = Schema.Struct({ expires_at: Timestamp })

const KeyRights = Schema.Struct({
  scopes: Schema.Array(KeyScope).annotate({ description: "No scope includes another" }),
  execute_grants: Schema.NullOr(Schema.Array(Schema.String)).annotate({
    description: "The routes that the key may execute, if it has control:execute. Null: every route"
  })
}).annotate({ identifier: "KeyRights", description: "What the calling key may do." })

/** The data about the caller. */
export const Session = Schema.Struct({
  user: Schema.NullOr(User).annotate({ description: "Null: the caller is an API key" }),
  active_team_id: Schema.String.annotate({ description: "The team of calls that name no team" }),
  session: Schema.NullOr(Ends).annotate({ description: "Null: the caller is an API key" }),
  memberships: Schema.Array(Membership).annotate({ description: "Empty: the caller is a project key" }),
  key: Schema.optionalKey(KeyRights).annotate({ description: "Only if the caller is a key: what it may do" })
}).annotate({ identifier: "Session", description: "The caller." })
export type Session = typeof Session.Type

/** The answer to a sign-in. */
export const NewSession = Schema.Struct({
  token: Schema.String.annotate({ description: "Shown only once. Send it as `Authorization: Bearer <token>`" }),
  user: User,
  active_team_id: Schema.String,
  session: Ends,
  memberships: Schema.Array(Membership)
}).annotate({ identifier: "NewSession", description: "A new session." })
export type NewSession = typeof NewSession.Type

/** A signed-in person, identified by a session's token. */
export interface SignedIn {
  readonly tokenHash: string
  readonly user: User
  /** Whether the issuer has verified the address: only then can it make the person a site admin. */
  readonly emailVerified: boolean
  /** The team of a call that names none. */
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

/** The caller's default team, for a call that names none. */
export const ownTeam = (caller: Caller): string => (caller.kind === "key" ? caller.key.team : caller.signedIn.team)
