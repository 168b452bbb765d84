import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from '@mantine/core';

/** The start page's blue-green. Index 7 is a background for white text, index 3 is text on dark background. */
const sluice: MantineColorsTuple = [
  '#e8f6fb',
  '#d3ebf4',
  '#a5d7e8',
  '#73c2dd',
  '#4fb0d2',
  '#2f9bc0',
  '#1783a8',
  '#0b6e8f',
  '#085a76',
  '#04465d',
];

/** Mantine's dark grays with a touch of blue, to match the backgrounds below. */
const darkGround: MantineColorsTuple = [
  '#e3e9ef',
  '#c3ccd5',
  '#a3b0bd',
  '#7c8996',
  '#3a4754',
  '#2a343f',
  '#1d2630',
  '#171e26',
  '#10151b',
  '#0a0e12',
];

/** Colours used for badges, alerts and buttons of the light variant. */
const spoken = ['sluice', 'gray', 'red', 'green', 'yellow', 'orange', 'blue', 'teal'];

export const theme = createTheme({
  // styles.css then removes transitions, so nothing may wait for the end of one.
  respectReducedMotion: true,
  primaryColor: 'sluice',
  // White text on it is well above WCAG AA's contrast, on either background.
  primaryShade: 7,
  // Light filled colours get dark text.
  autoContrast: true,
  colors: { sluice, dark: darkGround },
  components: {
    Badge: { styles: { root: { textTransform: 'none' } } },
    Modal: { styles: { title: { fontWeight: 650 } } },
    // A placeholder for the focus would be a child that a menu must not have.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    Notification: {
      defaultProps: { closeButtonProps: { 'aria-label': 'Dismiss' } },
      styles: { description: { color: 'var(--mantine-color-dimmed)' } },
    },
  },
  defaultRadius: 'md',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '650', sizes: { h1: { fontSize: '1.6rem' }, h2: { fontSize: '1.15rem' } } },
  focusRing: 'auto',
  cursorType: 'pointer',
});

/** Some of Mantine's quiet colours are below WCAG AA's contrast of 4.5:1; these are above it on both backgrounds. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#566270',
    '--mantine-color-placeholder': '#66727f',
    '--mantine-color-error': '#c11f1f',
    '--mantine-color-anchor': 'var(--mantine-color-sluice-7)',
    '--sluice-line': '#dfe4ea',
    '--sluice-ground': '#f7f8fa',
    '--sluice-card': '#ffffff',
    '--chart-1': '#0b6e8f',
    '--chart-2': '#b4530a',
    '--chart-3': '#5b4db1',
    '--chart-bad': '#c92a2a',
    ...Object.fromEntries(spoken.map((color) => [`--mantine-color-${color}-light-color`, darkest[color] ?? '#1c2530'])),
  },
  dark: {
    '--mantine-color-dimmed': '#a3b0bd',
    '--mantine-color-placeholder': '#93a0ad',
    '--mantine-color-error': '#ff9c9c',
    '--mantine-color-body': '#10151b',
    '--mantine-color-anchor': 'var(--mantine-color-sluice-3)',
    '--sluice-line': '#2a343f',
    '--sluice-ground': '#10151b',
    '--sluice-card': '#171e26',
    '--chart-1': '#58bfdf',
    '--chart-2': '#f0a35e',
    '--chart-3': '#b3a8f5',
    '--chart-bad': '#ff8787',
    ...Object.fromEntries(
      spoken.map((color) => [`--mantine-color-${color}-light-color`, lightest[color] ?? '#e3e9ef']),
    ),
  },
});

const darkest: Record<string, string> = {
  sluice: '#085a76',
  gray: '#3b444d',
  red: '#a31515',
  green: '#1d6b2d',
  yellow: '#7a4f00',
  orange: '#93400a',
  blue: '#1557a0',
  teal: '#06674c',
};

const lightest: Record<string, string> = {
  sluice: '#a5d7e8',
  gray: '#ced4da',
  red: '#ffb3b3',
  green: '#a3e6ae',
  yellow: '#ffe08a',
  orange: '#ffc896',
  blue: '#a5d2ff',
  teal: '#8ce9cb',
};
