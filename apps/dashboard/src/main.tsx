import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { RouterProvider } from "@tanstack/react-router"
import { StrictMode, useMemo, useState } from "react"
import { createRoot } from "react-dom/client"
import { isSignedOut } from "./gateway.ts"
import { SignIn } from "./pages/SignIn.tsx"
import { Failure, Loading } from "./parts/States.tsx"
import { router } from "./router.tsx"
import { SessionContext, useClientOf, useMe } from "./session.ts"

const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 2_000, retry: 1, refetchOnWindowFocus: true, refetchIntervalInBackground: false }
  }
})

/** The pages for a signed-in caller; otherwise the sign-in. */
const App = () => {
  const me = useMe()
  const [chosen, setChosen] = useState(localStorage.getItem("team"))
  const known = me.data?.memberships.some(({ team_id }) => team_id === chosen) === true
  const team = known ? chosen : (me.data?.active_team_id ?? null)
  const client = useClientOf(team)
  const session = useMemo(
    () =>
      me.data === undefined || team === null
        ? null
        : {
            me: me.data,
            team,
            client,
            showTeam: (next: string) => {
              localStorage.setItem("team", next)
              setChosen(next)
            }
          },
    [client, me.data, team]
  )
  if (me.isPending) return <Loading />
  if (me.isError && isSignedOut(me.error)) return <SignIn />
  if (session === null) return <Failure error={me.error} retry={me.refetch} />
  return (
    <SessionContext value={session}>
      <RouterProvider router={router} />
    </SessionContext>
  )
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>
)
