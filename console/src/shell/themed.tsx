import { MantineProvider } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';
import { flushSync } from 'react-dom';
import { cssVariables, theme } from '../theme.ts';

/** Gives the pages their theme, in the chosen colours; on paper dark on white, as browsers leave out backgrounds and keep light text. */
export function Themed({ children }: { children: ReactNode }) {
  const isPrinting = useIsPrinting();
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      {...(isPrinting && { forceColorScheme: 'light' })}
    >
      {children}
    </MantineProvider>
  );
}

function useIsPrinting(): boolean {
  const [paper] = useState(() => window.matchMedia('print'));
  const [isPrinting, setIsPrinting] = useState(paper.matches);
  useEffect(() => {
    // At once: the browser prints what is there when they return.
    const begin = (): void => flushSync(() => setIsPrinting(true));
    const end = (): void => setIsPrinting(false);
    const change = ({ matches }: MediaQueryListEvent): void => (matches ? begin() : end());
    window.addEventListener('beforeprint', begin);
    window.addEventListener('afterprint', end);
    paper.addEventListener('change', change);
    return () => {
      window.removeEventListener('beforeprint', begin);
      window.removeEventListener('afterprint', end);
      paper.removeEventListener('change', change);
    };
  }, [paper]);
  return isPrinting;
}
