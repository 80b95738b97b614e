import { isAdmin } from './api/session.ts'
import { keys } from './copy/common.ts'
import { isHelpOpen } from './keys.ts'
import { nav } from './routes.ts'
import { Dialog } from './ui/dialog.tsx'

const Row = ({ label, shown }: { label: string; shown: readonly string[] }) => (
  <div class="shortcut">
    <dt>{label}</dt>
    <dd>
      {shown.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </dd>
  </div>
)

/** The list that `?` opens. */
export const Shortcuts = () => (
  <Dialog title={keys.title} onClose={() => void (isHelpOpen.value = false)}>
    <dl class="shortcuts">
      {nav
        .filter((one) => !one.admin || isAdmin.value)
        .map(({ label, letter }) => (
          <Row key={letter} label={`${keys.go} ${label}`} shown={['g', letter]} />
        ))}
      <Row label={keys.rows} shown={['j', 'k']} />
      <Row label={keys.open} shown={['Enter']} />
      <Row label={keys.search} shown={['/']} />
      <Row label={keys.theme} shown={['t']} />
      <Row label={keys.help} shown={['?']} />
      <Row label={keys.close} shown={['Esc']} />
    </dl>
  </Dialog>
)
