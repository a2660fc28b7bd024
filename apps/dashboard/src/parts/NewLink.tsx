import { Link } from "@tanstack/react-router"
import { type Call, useMay } from "../may.ts"

/** The link in the head of a list to the page that makes a new one, for whoever may make the call of that page. */
export const NewLink = ({
  call,
  children,
  to
}: {
  readonly call: Call
  readonly children: string
  readonly to: string
}) =>
  useMay()(call) ? (
    <div className="actions">
      <Link to={to} className="button">
        {children}
      </Link>
    </div>
  ) : null
