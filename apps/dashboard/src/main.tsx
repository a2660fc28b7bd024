import { QueryClient, QueryClientProvider, replaceEqualDeep } from "@tanstack/react-query"
import { RouterProvider } from "@tanstack/react-router"
import { lazy, StrictMode, Suspense, use, useMemo, useState } from "react"
import { createRoot } from "react-dom/client"
import { rememberSignOut } from "./demo.ts"
import { answerOfProvider, endAtProvider, endSession, folder, isSignedOut, messageOf, tokenOfShare } from "./gateway.ts"
import { hasExactNumber } from "./json.ts"
import { SignIn } from "./pages/SignIn.tsx"
import { Failure, Loading } from "./parts/States.tsx"
import { router } from "./router.tsx"
import { SessionContext, useClientOf, useMe } from "./session.ts"

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      retry: 1,
      refetchOnWindowFocus: true,
      refetchIntervalInBackground: false,
      // Unchanged values stay the same objects, so that they are not drawn again. A number with more digits than JavaScript's would be copied, and
      // lose its type.
      structuralSharing: (before, after) => (hasExactNumber(after) ? after : replaceEqualDeep(before, after))
    }
  }
})

// Loaded when it is opened.
const Shared = lazy(async () => ({ default: (await import("./pages/Shared.tsx")).Shared }))

const signOut = async () => {
  rememberSignOut()
  await endSession(false)
  location.assign(folder)
}

/** The pages for a signed-in caller. Otherwise the sign-in page, with the reason why the last sign-in failed. */
const App = ({ failure }: { readonly failure: string | null }) => {
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
  if (me.isError && isSignedOut(me.error)) return <SignIn failure={failure} />
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

/** Comes back from the identity provider: a failure in words, or null. */
const Returned = ({ signedIn }: { readonly signedIn: Promise<string | null> }) => <App failure={use(signedIn)} />

const shared = tokenOfShare()
const answer = answerOfProvider()
// The code must not stay in the browser's history.
if (answer !== null) history.replaceState(null, "", folder)
const signedIn = answer === null ? null : endAtProvider(answer).then(() => null, messageOf)

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <Suspense fallback={<Loading />}>
        {shared !== null ? (
          <Shared token={shared} />
        ) : signedIn !== null ? (
          <Returned signedIn={signedIn} />
        ) : (
          <App failure={null} />
        )}
      </Suspense>
    </QueryClientProvider>
  </StrictMode>
)
