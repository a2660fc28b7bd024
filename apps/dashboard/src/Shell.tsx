import { useQuery } from "@tanstack/react-query"
import { Link, Outlet, useNavigate } from "@tanstack/react-router"
import { type FormEvent, useEffect, useRef, useState } from "react"
import { endSession, folder } from "./gateway.ts"
import { pathOf } from "./pages/paths.ts"
import { isTyping } from "./parts/List.tsx"
import { useSession } from "./session.ts"

const groups = [
  {
    title: "Watch",
    pages: [
      ["/", "Overview"],
      ["/requests", "Requests"],
      ["/events", "Events"],
      ["/runs", "Workflow runs"],
      ["/bulk-operations", "Bulk operations"]
    ]
  },
  {
    title: "Build",
    pages: [
      ["/sources", "Sources"],
      ["/connections", "Connections"],
      ["/destinations", "Destinations"],
      ["/transformations", "Transformations"],
      ["/workflows", "Workflows"]
    ]
  },
  { title: "Operate", pages: [["/team", "Team"]] }
] as const

/** Any id, pasted anywhere on the page, opens its record. */
const Find = () => {
  const navigate = useNavigate()
  const field = useRef<HTMLInputElement>(null)
  const [isUnknown, setUnknown] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "/" || isTyping(event)) return
      event.preventDefault()
      field.current?.focus()
    }
    const onPaste = (event: ClipboardEvent) => {
      const to = pathOf(event.clipboardData?.getData("text").trim() ?? "")
      if (to === null || isTyping(event)) return
      void navigate({ to })
    }
    document.addEventListener("keydown", onKey)
    document.addEventListener("paste", onPaste)
    return () => {
      document.removeEventListener("keydown", onKey)
      document.removeEventListener("paste", onPaste)
    }
  }, [navigate])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const to = pathOf(field.current?.value.trim() ?? "")
    setUnknown(to === null)
    if (to !== null) void navigate({ to })
  }
  return (
    <form className="find" onSubmit={submit} role="search">
      <input
        ref={field}
        type="search"
        aria-label="Open by id"
        placeholder="Open by id: req_…, evt_…, src_…  (press /)"
      />
      {isUnknown ? <span role="alert">No page shows records with such an id.</span> : null}
    </form>
  )
}

const themes = ["system", "light", "dark"] as const

const Theme = () => {
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "system")
  useEffect(() => {
    localStorage.setItem("theme", theme)
    if (theme === "system") delete document.documentElement.dataset["theme"]
    else document.documentElement.dataset["theme"] = theme
  }, [theme])
  return (
    <select aria-label="Theme" value={theme} onChange={({ target }) => setTheme(target.value)}>
      {themes.map((one) => (
        <option key={one} value={one}>
          {one.charAt(0).toUpperCase() + one.slice(1)}
        </option>
      ))}
    </select>
  )
}

const Teams = () => {
  const { client, me, showTeam, team } = useSession()
  const teams = useQuery({
    queryKey: ["teams"],
    queryFn: () => client.get("/teams"),
    enabled: me.user !== null,
    retry: false
  })
  const all = teams.data?.data ?? []
  if (all.length < 2) return <span className="muted">{all[0]?.name ?? team}</span>
  return (
    <select aria-label="Team" value={team} onChange={({ target }) => showTeam(target.value)}>
      {all.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  )
}

const signOut = async (isUser: boolean) => {
  await endSession(isUser)
  location.assign(folder)
}

/** What is around every page. */
export const Shell = () => {
  const { me } = useSession()
  return (
    <div className="shell">
      <a className="skip" href="#page">
        Skip to the page
      </a>
      <div className="topbar">
        <Link to="/" className="brand">
          Tidegate
        </Link>
        <Find />
        <div className="right">
          <Teams />
          <Theme />
          <span className="muted">{me.user?.name ?? me.user?.email ?? "API key"}</span>
          <button type="button" onClick={() => void signOut(me.user !== null)}>
            Sign out
          </button>
        </div>
      </div>
      <nav className="nav" aria-label="Pages">
        {groups.map(({ pages, title }) => (
          <div key={title}>
            <h2>{title}</h2>
            {pages.map(([to, label]) => (
              <Link key={to} to={to} activeOptions={{ exact: to === "/" }}>
                {label}
              </Link>
            ))}
          </div>
        ))}
      </nav>
      <main className="page" id="page">
        <Outlet />
      </main>
    </div>
  )
}
