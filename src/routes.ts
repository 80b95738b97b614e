import { password } from './accounts/password.ts'
import { signup } from './accounts/signup.ts'
import { status } from './accounts/status.ts'
import { verify } from './accounts/verify.ts'
import { bootstrap } from './bootstrap/bootstrap.ts'
import type { Route } from './core/route.ts'
import { second_factor } from './second-factor/second_factor.ts'
import { login } from './sessions/login.ts'
import { logout } from './sessions/logout.ts'
import { options } from './sign-in/options.ts'
import { reauthenticate } from './sign-in/reauthenticate.ts'

/** The REST routes, below the account mount (`/api/account`). */
export const routes = {
  login,
  logout,
  second_factor,
  reauthenticate,
  password,
  verify,
  status,
  options,
  bootstrap,
  signup,
}

export type Routes = typeof routes

export const routeList: readonly Route[] = Object.values(routes as unknown as Record<string, Route>)
