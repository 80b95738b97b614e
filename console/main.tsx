import './styles/tokens.css'
import './styles/base.css'
import './styles/ui.css'
import './styles/shell.css'
import './styles/print.css'
import { render } from 'preact'
import { startLive } from './api/live.ts'
import { loadSession } from './api/session.ts'
import { startKeys } from './keys.ts'
import { keepFocus } from './lib/focus.ts'
import { startRouter } from './lib/router.ts'
import { Shell } from './shell.tsx'

startRouter()
startKeys()
keepFocus()
startLive()
void loadSession()
render(<Shell />, document.getElementById('root') as HTMLElement)
