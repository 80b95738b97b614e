import { password } from './accounts/password.ts'
import { signup } from './accounts/signup.ts'
import { status } from './accounts/status.ts'
import { verify } from './accounts/verify.ts'
import { bootstrap } from './bootstrap/bootstrap.ts'
import type { Route } from './core/route.ts'
import { email_confirm } from './email/email_confirm.ts'
import { oidc_finish } from './oidc/oidc_finish.ts'
import { oidc_start } from './oidc/oidc_start.ts'
import { passkey_begin } from './passkeys/passkey_begin.ts'
import { passkey_finish } from './passkeys/passkey_finish.ts'
import { recover } from './recovery/recover.ts'
import { reset } from './recovery/reset.ts'
import { second_factor } from './second-factor/second_factor.ts'
import { login } from './sessions/login.ts'
import { logout } from './sessions/logout.ts'
import { options } from './sign-in/options.ts'
import { reauthenticate } from './sign-in/reauthenticate.ts'
import { ticket } from './tickets/ticket.ts'

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
  recover,
  ticket,
  reset,
  email_confirm,
  passkey_begin,
  passkey_finish,
  oidc_start,
  oidc_finish,
}

export type Routes = typeof routes

export const routeList: readonly Route[] = Object.values(routes as unknown as Record<string, Route>)
