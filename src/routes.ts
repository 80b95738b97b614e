import { password } from './accounts/password.ts'
import { signup } from './accounts/signup.ts'
import { status } from './accounts/status.ts'
import { verify } from './accounts/verify.ts'
import { bootstrap } from './bootstrap/bootstrap.ts'
import type { Route } from './core/route.ts'
import { recover } from './recovery/recover.ts'
import { reset } from './recovery/reset.ts'
import { login } from './sessions/login.ts'
import { logout } from './sessions/logout.ts'
import { ticket } from './tickets/ticket.ts'

/** The REST routes, below the account mount (`/api/account`). */
export const routes = { login, logout, password, verify, status, bootstrap, signup, recover, ticket, reset }

export type Routes = typeof routes

export const routeList: readonly Route[] = Object.values(routes as unknown as Record<string, Route>)
