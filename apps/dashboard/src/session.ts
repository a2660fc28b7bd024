import { useQuery, useQueryClient } from "@tanstack/react-query"
import { createContext, use, useMemo } from "react"
import type { Client } from "@tidegate/client/source"
import { gateway, type Row } from "./gateway.ts"

/** The signed-in caller and the team that the pages show. */
export interface Session {
  readonly me: Row<"Session">
  readonly team: string
  readonly client: Client
  readonly showTeam: (team: string) => void
}

export const SessionContext = createContext<Session | null>(null)

export const useSession = (): Session => {
  const session = use(SessionContext)
  if (session === null) throw new Error("this part is only shown to a signed-in caller")
  return session
}

/**
 * The caller's role in the team that the pages show, for the parts of a page that are for owners. `useMay` says it for a single call. The
 * team's own key acts as an owner, but changes nobody's access. A key without the scope to edit or to execute can only read.
 */
export const useRole = (): {
  readonly isSignedInOwner: boolean
  readonly isReader: boolean
  readonly mayOwn: boolean
} => {
  const { me, team } = useSession()
  const isOwner = me.memberships.some(({ role, team_id }) => team_id === team && role === "owner")
  const isReader = me.key?.scopes.every((scope) => scope !== "control:edit" && scope !== "control:execute") ?? false
  return { isSignedInOwner: me.user !== null && isOwner, isReader, mayOwn: isOwner }
}

/** The caller of the session's cookie. Fails with a 401 while nobody is signed in. */
export const useMe = () =>
  useQuery({
    queryKey: ["me"],
    queryFn: () => gateway().get("/auth/me"),
    retry: false,
    staleTime: 60_000
  })

/** A client for a team; all that is shown is read again when the team changes. */
export const useClientOf = (team: string | null): Client => useMemo(() => gateway(team ?? undefined), [team])

/** Reads everything again, because something has changed. */
export const useRefresh = (): (() => Promise<void>) => {
  const queries = useQueryClient()
  return () => queries.invalidateQueries()
}
