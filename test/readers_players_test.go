package test

// Folders of pictures. Whole folders are read unless the name of a reading says
// otherwise: then nothing can be fetched beyond the end.
var (
	dpxFrames  = fileSet{pattern: "dpx/shot.%04d.dpx", first: 1001, count: 300, picture: "-pix_fmt gbrp10be"}
	exrFrames  = fileSet{pattern: "exr/shot.%04d.exr", first: 1, count: 100, picture: "-pix_fmt gbrpf32le"}
	pngFrames  = fileSet{pattern: "png/plate_v002_%d.png", first: 1, count: 200, picture: "-pix_fmt rgb24"}
	jpgFrames  = fileSet{pattern: "jpg/cam1_%06d.jpg", first: 0, count: 200, picture: "-q:v 2"}
	loopFrames = fileSet{pattern: "loop/%03d.png", first: 1, count: 30, picture: "-pix_fmt rgb24"}
)

const (
	ffmpegVersion = "ffmpeg -version"
	mpvVersion    = "mpv --version"
	gstVersion    = "gst-launch-1.0 --version"
)

// mpvPlay is mpv without a screen, as fast as it decodes.
const mpvPlay = "mpv --no-config --really-quiet --vo=null --no-audio --untimed "

var playerReadings = []reading{
	{
		name: "ffmpeg image2", needs: "ffmpeg", pkg: "ffmpeg", version: ffmpegVersion,
		files:   []fileSet{exrFrames},
		command: `ffmpeg -v error -i exr/shot.%04d.exr -f null -`,
	},
	{
		name: "ffmpeg glob", needs: "ffmpeg", pkg: "ffmpeg", version: ffmpegVersion,
		files:   []fileSet{pngFrames}, // unpadded: glob sorts by bytes, 1 10 100 101
		command: `ffmpeg -v error -pattern_type glob -i 'png/*.png' -f null -`,
	},
	{
		name: "ffmpeg start_number", needs: "ffmpeg", pkg: "ffmpeg", version: ffmpegVersion,
		files:   []fileSet{dpxFrames},
		command: `ffmpeg -v error -framerate 48 -start_number 1001 -i dpx/shot.%04d.dpx -f null -`,
	},
	{
		// A window is about 0.35 s of playing and the time that two fetches take: of a
		// range that plays for 10 s, less than a twentieth.
		name: "ffmpeg range in real time", needs: "ffmpeg", pkg: "ffmpeg", version: ffmpegVersion,
		files:   []fileSet{dpxFrames},
		command: `ffmpeg -v error -re -framerate 25 -start_number 1021 -i dpx/shot.%04d.dpx -frames:v 250 -f null -`,
	},
	{
		name: "mpv", needs: "mpv", pkg: "mpv", version: mpvVersion,
		files:   []fileSet{jpgFrames},
		command: mpvPlay + `'mf://jpg/*.jpg'`,
	},
	{
		name: "mpv loop", needs: "mpv", pkg: "mpv", version: mpvVersion,
		files:   []fileSet{loopFrames},
		command: mpvPlay + `--loop-file=2 'mf://loop/%03d.png'`,
		unread:  0.1, // two of 30 small files
	},
	{
		name: "gstreamer multifilesrc", needs: "gst-launch-1.0", pkg: "gstreamer1.0-tools, gstreamer1.0-plugins-good", version: gstVersion,
		files:   []fileSet{pngFrames},
		command: `gst-launch-1.0 -q multifilesrc location=png/plate_v002_%d.png start-index=1 stop-index=200 caps=image/png,framerate=25/1 ! pngdec ! fakesink sync=false`,
	},
}
