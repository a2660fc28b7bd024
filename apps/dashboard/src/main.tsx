import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { RouterProvider } from "@tanstack/react-router"
import { lazy, StrictMode, Suspense, useMemo, useState } from "react"
import { createRoot } from "react-dom/client"
import { endSession, folder, isSignedOut, tokenOfShare } from "./gateway.ts"
import { SignIn } from "./pages/SignIn.tsx"
import { Failure, Loading } from "./parts/States.tsx"
import { router } from "./router.tsx"
import { SessionContext, useClientOf, useMe } from "./session.ts"

const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 2_000, retry: 1, refetchOnWindowFocus: true, refetchIntervalInBackground: false }
  }
})

// Loaded when it is opened.
const Shared = lazy(async () => ({ default: (await import("./pages/Shared.tsx")).Shared }))

const signOut = async () => {
  await endSession(false)
  location.assign(folder)
}

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
  if (session === null) {
    return (
      <main className="alone">
        <h1>Tidegate</h1>
        <Failure error={me.error} retry={me.refetch} />
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </main>
    )
  }
  return (
    <SessionContext value={session}>
      <RouterProvider router={router} />
    </SessionContext>
  )
}

const shared = tokenOfShare()

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      {shared === null ? (
        <App />
      ) : (
        <Suspense fallback={<Loading />}>
          <Shared token={shared} />
        </Suspense>
      )}
    </QueryClientProvider>
  </StrictMode>
)
